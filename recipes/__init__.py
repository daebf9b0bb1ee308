"""The wiring: one file per thing a user can start. Only here meet data, rewards and policies."""
