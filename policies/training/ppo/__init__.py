"""PPO for generators: the loop, its mathematics, and what it logs."""
