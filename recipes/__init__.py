# empathic-rewriting: this line says whose the package is (rewriting/distribution.py reads it).
"""The wiring: one file per thing a user can start. Only here meet data, rewards and policies."""
