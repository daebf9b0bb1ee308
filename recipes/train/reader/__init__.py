"""`train.py reader`: its settings and its run are in recipe.py."""

from recipes.train.reader.recipe import Config, run

__all__ = ["Config", "run"]
