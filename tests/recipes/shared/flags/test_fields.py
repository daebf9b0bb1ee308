"""Flags and YAML files of the recipes: one way of writing them, and one line for a mistake."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recipes.shared.flags.fields import parse
from rewriting.errors import UserError


@dataclass
class Config:
    output: str = "runs/toy"
    save_every: int = 10
    rate: float = 0.5
    rewards: str = field(default="{a: 1}", metadata={"help": "Up to 100 % of them."})
    overwrite: bool = False
    keep_best: bool = True
    warm_steps: int | None = None


TOY: Any = SimpleNamespace(Config=Config, __doc__="A toy.\n\n    python train.py toy\n")


def parsed(*arguments: str) -> Config:
    config = parse(TOY, "train.py toy", arguments)
    assert isinstance(config, Config)
    return config


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        (["--overwrite"], True),
        (["--overwrite", "true"], True),
        (["--overwrite=yes"], True),
        (["--overwrite", "False"], False),
        (["--overwrite", "--rate", "2"], True),
        ([], False),
    ],
)
def test_a_flag_without_a_value_is_a_yes(flags: list[str], value: bool) -> None:
    assert parsed(*flags).overwrite is value


@pytest.mark.parametrize("flag", ["--no_keep_best", "--no-keep-best"])
def test_what_is_on_can_be_turned_off(flag: str) -> None:
    assert parsed().keep_best
    assert not parsed(flag).keep_best
    assert not parsed("--keep-best", "false").keep_best


@pytest.mark.parametrize("flag", ["--save_every", "--save-every"])
def test_hyphens_and_underscores_are_the_same(flag: str) -> None:
    assert parsed(flag, "3").save_every == parsed(f"{flag}=3").save_every == 3


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "toy.yaml"
    file.write_text("save_every: 4\nrate: 1e-3\nrewards: {a: 2}\nwarm_steps: null\n")
    config = parsed("--config", str(file), "--save_every", "5")
    assert (config.save_every, config.rate, config.rewards) == (5, 0.001, {"a": 2})
    assert config.warm_steps is None
    assert parsed("--warm-steps", "7").warm_steps == 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("rate: 1\nsave_evry: 4\n", "line 2: there is no field save_evry. Did you mean save_every"),
        ("save_every: 1.5\n", "line 1: save_every is a whole number, not 1.5"),
        ("rate: fast\n", "rate is a number, not 'fast'"),
        ("overwrite: maybe\n", "overwrite is true or false, not 'maybe'"),
        ("output: {a: 1}\n", "output is a text"),
        ("output:\n", "output is a text, not None"),
        ("output: [a]\n", "output is a text"),
        ("- rate\n", "is no list of fields"),
        ("rate: [1\n", "line 2: not valid YAML"),
        ("rate: 1\nrewards: {a: 1}\nrate: 2\n", "line 3: not valid YAML ('rate' stands twice)"),
    ],
)
def test_a_mistake_in_a_file_is_named_by_its_line(
    tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "toy.yaml"
    file.write_text(content)
    with pytest.raises(UserError) as error:
        parsed("--config", str(file))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--save_evry", "4"], "there is no field --save_evry. Did you mean --save_every?"),
        (["--save_every"], "expected one argument"),
        (["--save_every", "4.5"], "--save_every is a whole number, not '4.5'"),
        (["--overwrite", "perhaps"], "--overwrite is true or false, not 'perhaps'"),
        (["--rate", "1", "stray"], "'stray' belongs to no flag"),
        (["--config", "gone.yaml"], "there is no config 'gone.yaml', as a file or by name"),
    ],
)
def test_a_mistake_in_a_flag_is_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        parsed(*arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_help_shows_examples_and_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parsed("--help")
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert "    python train.py toy\n" in shown
    assert "100 % of them. (default: {a: 1})" in " ".join(shown.split())
