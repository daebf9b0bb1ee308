"""`train.py crisis`: its settings and its run are in recipe.py."""

from recipes.train.crisis.recipe import Config, run

__all__ = ["Config", "run"]
