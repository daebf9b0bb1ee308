"""One kill -9 in `train.py identifier`; `python -m tests.recipes.train.kills` makes dozens.

tests/recipes/train/partner/test_recipe.py has one in `train.py partner`.
"""

import random
from pathlib import Path

from recipes.train.identifier import Config, run
from tests.recipes.train.kills import Runs, differences, identifier_toy


def test_a_killed_identifier_ends_with_the_same_bits(tmp_path: Path) -> None:
    settings = identifier_toy(tmp_path)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run(Config(**settings, output=str(whole)))
    runs = Runs("identifier", settings, random.Random(1))
    assert runs.kill(cut), "it ended before it could be killed"
    assert runs.kills.total() == 1
    assert differences(cut, whole) != []
    run(Config(**settings, output=str(cut)))
    assert differences(cut, whole) == []
    assert (cut / "model" / "identifier.safetensors").is_file()
