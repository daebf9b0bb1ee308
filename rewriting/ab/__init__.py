"""Blinded, counterbalanced human A/B studies in the browser, and honest statistics of them."""
