"""A card names a command that can be typed."""

import shlex
from typing import Any

import pytest

from recipes.entry import parse
from recipes.shared.cards import command
from recipes.train.partner import recipe as partner


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"from_policy": "", "warm_steps": 3},
        {"data": "a folder/x.csv,sample", "rewards": "{fluency: 1, mine.py:shorter: 0.5}"},
        {"keep_best": True, "learning_rate": 1e-5},
    ],
)
def test_a_command_gives_its_config_back(changed: dict[str, Any]) -> None:
    config = partner.Config(**changed)
    program, script, recipe, *flags = shlex.split(command("partner", config))
    assert (program, script, recipe) == ("python", "train.py", "partner")
    assert parse(partner, "train.py partner", flags) == config


def test_a_mapping_of_rewards_becomes_one_line() -> None:
    config = partner.Config(rewards={"fluency": 1.0})  # type: ignore[arg-type]  # from a YAML file
    assert """--rewards '{"fluency": 1.0}'""" in command("partner", config)
