"""`train.py emprl`: its settings and its run are in recipe.py."""

from recipes.train.emprl.recipe import Config, run

__all__ = ["Config", "run"]
