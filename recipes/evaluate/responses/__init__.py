"""`evaluate.py responses`: its settings and its run are in table.py."""

from recipes.evaluate.responses.table import Config, run

__all__ = ["Config", "run"]
