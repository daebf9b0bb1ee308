"""Every config builds its recipe, and can be shared by as many processes as it is meant for."""

import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from recipes.entry import TRAINING, parse
from recipes.train.emprl import recipe as emprl
from recipes.train.partner import recipe as partner
from rewards.named import Models, build_rewards
from rewriting.errors import UserError
from tests.recipes.words import Words
from tests.test_architecture import imports

CONFIGS = Path(__file__).parent.parent / "configs"
NAMES = {"sklearn": "scikit-learn", "yaml": "PyYAML", "interpret": "interpret-core"}
"""Imports whose package is called otherwise."""
FILES = sorted(CONFIGS.glob("*.yaml"))


class AnyBackbone:
    """Stands in for a language model: terms only take note of it when they are built."""

    def attach(self, role: str, folder: Any) -> None: ...


def recipe_of(file: Path) -> Any:
    """The recipe whose name the file's begins with."""
    return import_module(TRAINING[file.stem.split("_")[0]])


def built(file: Path) -> Any:
    recipe = recipe_of(file)
    return parse(recipe, "train.py", ["--config", str(file)])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_config_builds_its_recipe(file: Path) -> None:
    config = built(file)  # an unknown field or a wrong type raises
    recipe_of(file).check(config)
    build_rewards(config.rewards, Models(identifier=Words(), language_model=AnyBackbone()))
    command = re.search(r"train\.py (\w+) --config configs/(\S+)", file.read_text("utf-8"))
    assert command is not None, "the file does not say how it is used"
    assert TRAINING[command[1]] == recipe_of(file).__name__
    assert command[2] == file.name


@pytest.mark.parametrize("num_processes", [1, 2, 4, 8])
@pytest.mark.parametrize(
    "name", [f.name for f in FILES if f.stem.split("_")[0] in ("partner", "emprl")]
)
def test_a_config_can_be_shared_by_up_to_eight_processes(name: str, num_processes: int) -> None:
    config = built(CONFIGS / name)
    assert "each gets" in recipe_of(CONFIGS / name).shares(config, num_processes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "partner.yaml",
            "each gets 1 example a step in the warm start and 1 exchange a step with 4",
        ),
        (
            "partner_paper.yaml",
            "each gets 4 examples a step in the warm start and 2 exchanges a step with 8",
        ),
        (
            "emprl_paper.yaml",
            "each gets 8 exchanges a step in the supervised stage and 32 responses a step in "
            "PPO, 8 of them in each update",
        ),
    ],
)
def test_what_each_of_eight_processes_gets(name: str, expected: str) -> None:
    assert recipe_of(CONFIGS / name).shares(built(CONFIGS / name), 8).startswith(expected)


def test_what_cannot_be_shared_is_refused() -> None:
    with pytest.raises(UserError, match="batch_size 4 cannot be shared by 8 processes"):
        partner.shares(partner.Config(batch_size=4), 8)
    with pytest.raises(UserError, match="warm_batch_size 6 cannot be shared by 4 processes"):
        partner.shares(partner.Config(warm_steps=5, warm_batch_size=6), 4)
    with pytest.raises(UserError, match="sft_batch_size 4 cannot be shared by 8 processes"):
        emprl.shares(emprl.Config(sft_batch_size=4), 8)
    with pytest.raises(UserError, match="minibatch_size 4 leaves some of 8 processes without"):
        emprl.shares(emprl.Config(batch_size=32, minibatch_size=4), 8)


def test_every_import_is_declared() -> None:
    project = tomllib.loads((CONFIGS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["ab"], *extras["deepspeed"], *extras["excel"]]
    declared = {plain(re.split(r"[<>=]", line)[0]) for line in lines} | set(sys.stdlib_module_names)
    ours = {"rewriting", "rewards", "policies", "recipes"}
    for package in ours:
        for path in (CONFIGS.parent / package).rglob("*.py"):
            found = {name.split(".")[0] for name in imports(path)} - ours
            assert {plain(NAMES.get(name, name)) for name in found} <= declared, path


def plain(name: str) -> str:
    return name if name == "__future__" else name.lower().replace("-", "_")
