"""Policies that need no training, to compare the trained ones with."""
