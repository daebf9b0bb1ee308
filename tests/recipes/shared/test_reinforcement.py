"""What the recipes of reinforcement learning do alike, by hand."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from recipes.shared.reinforcement import (
    before_and_after,
    dev_exchanges,
    kept_figures,
    save_policy,
)
from rewriting import Exchange
from rewriting.data import Split


def test_the_kept_step_stands_beside_the_first() -> None:
    rows = [{"step": step, "dev/reward": step / 10} for step in (0, 1, 2)]
    figures = kept_figures(SimpleNamespace(rows=rows, step=1))
    assert figures == {"step": 1, "first": rows[0], "last": rows[1]}
    assert before_and_after(figures).splitlines() == [
        "| on dev | before | after |",
        "|---|---:|---:|",
        "| reward | 0.000 | 0.100 |",
    ]


def test_a_run_without_dev_exchanges_has_no_table() -> None:
    assert before_and_after({"rows": {}}) == ""
    assert before_and_after({"first": {"loss": 1.0}, "last": {"loss": 0.5}}) == ""


def test_so_many_dev_exchanges_are_drawn_by_the_seed() -> None:
    rows = [Exchange(f"Post {n}.", "Oh.") for n in range(9)]
    splits: dict[Split, list[Exchange]] = {"train": [], "dev": rows, "test": []}
    found = dev_exchanges(SimpleNamespace(dev_rows=3, seed=1), splits)
    assert len(found) == 3
    assert found == dev_exchanges(SimpleNamespace(dev_rows=3, seed=1), splits)
    assert dev_exchanges(SimpleNamespace(dev_rows=0, seed=1), splits) == []


@dataclass
class Settings:
    temperature: float = 1.0
    top_p: float = 1.0


class Policy:
    """Remembers how it was saved."""

    def __init__(self) -> None:
        self.settings, self.saved = Settings(), []  # type: ignore[var-annotated]

    def save(self, folder: Path, dtype: Any) -> None:
        self.saved.append((folder, self.settings, dtype))


def test_a_policy_is_saved_as_it_is_to_be_used(tmp_path: Path) -> None:
    policy = Policy()
    for half, dtype in ((True, torch.float16), (False, None)):
        save_policy(SimpleNamespace(temperature=0.7, top_p=0.9, half=half), policy, tmp_path)
        assert policy.saved[-1] == (tmp_path, Settings(0.7, 0.9), dtype)
        assert policy.settings == Settings(1.0, 1.0)  # and trained on as it was
