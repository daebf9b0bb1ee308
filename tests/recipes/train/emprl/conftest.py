"""A small run's settings, and words instead of an identifier."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recipes.train.emprl.recipe import Config
from rewards.identifiers import named
from tests.recipes.train.emprl.toys import ROWS, SETTINGS
from tests.recipes.words import Words
from tests.tiny_t5 import write_tiny_t5


@pytest.fixture
def identifier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "load_identifier", lambda name="words", **_: Words())


@pytest.fixture
def config(tmp_path: Path, jsonl: Callable[..., Path]) -> Config:
    model = write_tiny_t5(tmp_path / "model")
    return Config(output=str(tmp_path / "run"), data=str(jsonl(ROWS)), model=str(model), **SETTINGS)
