"""What the supervised recipes share: the call of the loop, by hand."""

from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recipes.shared.supervised import Supervised, output_field, train_supervised
from rewriting.runtime.settings import borrowed


@dataclass
class Config:
    output: str = output_field("toy", "adapter")
    steps: int = borrowed(Supervised, "steps", 3)
    batch_size: int = borrowed(Supervised, "batch_size")
    bar: float = 0.5


def test_the_config_says_what_a_run_is_and_options_win(monkeypatch: pytest.MonkeyPatch) -> None:
    called: dict[str, Any] = {}

    def train(*rows: Any, **options: Any) -> str:
        called.update(options, rows=rows)
        return "best"

    monkeypatch.setattr("rewriting.runtime.training.supervised.train", train)
    finished: list[str] = []
    accelerator = SimpleNamespace(
        trackers=[SimpleNamespace(finish=lambda: finished.append("finished"))]
    )
    best = train_supervised(
        "toy", Config(), accelerator, "module", "loss", [1], [2],
        chosen_afterwards=("bar",), batch_size=5, average=0.9,
    )  # fmt: skip
    assert best == "best"
    assert finished == ["finished"]
    assert called == {
        "rows": ("module", "loss", [1], [2]),
        "output": Path("runs/toy"),
        "accelerator": accelerator,
        "settings": {"steps": 3, "batch_size": 16},
        "title": "toy",
        "steps": 3,
        "batch_size": 5,
        "average": 0.9,
    }


def test_a_folder_is_named_after_its_recipe() -> None:
    (output,) = (one for one in fields(Config) if one.name == "output")
    assert output.default == "runs/toy"
    assert output.metadata["help"].startswith("Folder for the adapter, checkpoints, log")
