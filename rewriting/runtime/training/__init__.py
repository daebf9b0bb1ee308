"""What every training shares: the run on an accelerator, its weights, checkpoints and log."""
