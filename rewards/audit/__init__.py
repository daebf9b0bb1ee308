"""What fools a reward: stock sentences, nonsense, and words said to somebody else."""
