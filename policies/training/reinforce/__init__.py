"""REINFORCE for edit policies: the loop, and what it logs, draws and shows."""
