"""`evaluate.py audit`: its settings and its run are in table.py."""

from recipes.evaluate.audit.table import Config, run

__all__ = ["Config", "run"]
