"""The recipes of train.py: a file each, or a folder where one has several parts."""
