"""`evaluate.py rewrites`: its settings and its run are in table.py."""

from recipes.evaluate.rewrites.table import Config, run

__all__ = ["Config", "run"]
