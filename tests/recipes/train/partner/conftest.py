"""A small run's settings, and a run that was never stopped."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes.shared.sources import load_splits
from recipes.train.partner.recipe import Config, run
from tests.recipes.train.partner.toys import (
    ROWS,
    SETTINGS,
    write_tiny_adapter,
    write_tiny_identifier,
)
from tests.tiny_lm import write_tiny_llama


@pytest.fixture
def config(tmp_path: Path, jsonl: Callable[..., Path]) -> Config:
    model = write_tiny_llama(tmp_path / "model")
    return Config(output=str(tmp_path / "run"), data=str(jsonl(ROWS)), model=str(model), **SETTINGS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Config:
    """A run that nobody stopped, in its second epoch at the end, judged by models of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    model, data = write_tiny_llama(folder / "model"), folder / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS[::2]), encoding="utf-8")
    rewards = {
        "empathy_change": 1.0,
        "fluency": 5.0,
        "mutual_information": {"weight": 2.0, "adapter": str(write_tiny_adapter(model, folder))},
        "edit_size": 0.5,
    }
    config = Config(
        output=str(folder / "run"),
        data=str(data),
        model=str(model),
        identifier=str(write_tiny_identifier(folder)),
        **SETTINGS
        | {"steps": 12, "save_every": 3, "show_every": 6, "rewards": json.dumps(rewards)}
        | {"num_samples": 4, "micro_batch_size": 8},
    )
    assert config.steps * config.batch_size > len(load_splits(config.data)["train"])
    run(config)
    return config
