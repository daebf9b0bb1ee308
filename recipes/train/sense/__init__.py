"""`train.py sense`: its settings and its run are in recipe.py."""

from recipes.train.sense.recipe import Config, run

__all__ = ["Config", "run"]
