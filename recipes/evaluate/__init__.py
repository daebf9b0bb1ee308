"""The tables of evaluate.py: a file each, or a folder where one has several parts."""
