"""`train.py identifier`: its settings and its run are in recipe.py."""

from recipes.train.identifier.recipe import Config, run

__all__ = ["Config", "run"]
