"""`train.py partner`: its settings and its run are in recipe.py."""

from recipes.train.partner.recipe import Config, run

__all__ = ["Config", "run"]
