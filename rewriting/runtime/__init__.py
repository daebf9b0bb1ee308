"""The ground that rewards and policies stand on: named models, checkpoints, seeds, jobs."""
