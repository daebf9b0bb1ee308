"""Micromodels: seed sentences and a boosting machine over how near a response comes."""
