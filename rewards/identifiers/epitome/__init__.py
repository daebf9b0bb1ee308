"""EPITOME's identifier: two encoders, levels and rationales."""
