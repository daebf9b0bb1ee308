"""`train.py grpo`: its settings and its run are in recipe.py."""

from recipes.train.grpo.recipe import Config, run

__all__ = ["Config", "run"]
