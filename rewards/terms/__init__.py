"""The terms of a reward: a file each."""
