"""Trackers of the recipes: asked for, refused before anything is loaded, told what the log says."""

import json
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from accelerate import tracking
from accelerate.utils import LoggerType

from recipes.entry import TRAINING
from recipes.shared.accelerator import flat_figures, track_figures, trackers_of
from recipes.shared.settings import Shared
from rewriting import UserError

SUPERVISED = [name for name in TRAINING if name not in ("partner", "emprl", "grpo")]


class Recording(tracking.GeneralTracker):
    """A tracker that keeps what it is told. Stands in for tensorboard, which writes files."""

    name = "tensorboard"
    requires_logging_directory = True
    runs: list["Recording"] = []  # noqa: RUF012

    def __init__(self, run_name: str, logging_dir: str) -> None:
        super().__init__()
        self.run_name, self.folder = run_name, logging_dir
        self.settings: dict[str, Any] = {}
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.finished = False
        Recording.runs.append(self)

    @property
    def tracker(self) -> Any:
        return self

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self.settings = values

    def log(self, values: dict[str, float], step: int | None = None, **_: Any) -> None:
        assert not self.finished
        self.rows.append((step or 0, dict(values)))

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Recording]:
    monkeypatch.setattr(tracking, "_available_trackers", [LoggerType.TENSORBOARD])
    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "tensorboard", Recording)
    monkeypatch.setattr(Recording, "runs", [])
    return Recording.runs


def test_a_supervised_recipe_tells_its_tracker_what_its_log_says(
    tmp_path: Path, recorded: list[Recording], capsys: pytest.CaptureFixture[str]
) -> None:
    from recipes.train.kindness import run
    from tests.recipes.train.test_kindness import config, write_sentences

    write_sentences(tmp_path)
    settings = config(tmp_path, tmp_path / "run", report_to="tensorboard")
    run(settings)
    (tracker,) = recorded
    assert (tracker.run_name, tracker.folder) == ("kindness", str(tmp_path / "run"))
    assert tracker.settings["rank"] == 2
    assert tracker.finished
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert tracker.rows == [(row["step"], row) for row in log]
    assert [step for step, _ in tracker.rows] == [1, 2]
    assert "kindness: 2 steps" in capsys.readouterr().out
    settings.report_to = ""
    run(settings)  # another tracker is no reason to refuse to go on
    assert len(recorded) == 1


@pytest.mark.parametrize("recipe", SUPERVISED)
def test_every_recipe_refuses_an_unknown_tracker_at_once(recipe: str, tmp_path: Path) -> None:
    module = import_module(TRAINING[recipe])
    assert {"report_to"} <= {one.name for one in fields(module.Config)}
    with pytest.raises(UserError, match="report_to carrier-pigeon"):
        module.run(module.Config(output=str(tmp_path), report_to="carrier-pigeon"))
    assert not list(tmp_path.iterdir())


def test_a_tracker_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "_available_trackers", [LoggerType.WANDB])
    assert trackers_of(" wandb, ") == ["wandb"]
    with pytest.raises(UserError, match="report_to tensorboard: it is not installed"):
        trackers_of("wandb,tensorboard")


def test_recipes_without_steps_tell_their_figures(recorded: list[Recording]) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(log_with="tensorboard", project_dir="nowhere")
    accelerator.init_trackers("context")
    figures = {"n": 3, "good": True, "name": "x", "results": [{"f1": 0.5}], "by": {"a": {"b": 1}}}
    track_figures(accelerator, figures)
    (tracker,) = recorded
    assert tracker.rows == [(0, {"n": 3.0, "results/0/f1": 0.5, "by/a/b": 1.0})]
    assert tracker.finished
    assert flat_figures("x") == {}


def test_the_setting_is_the_same_everywhere() -> None:
    (shared,) = (one for one in fields(Shared) if one.name == "report_to")
    for recipe in SUPERVISED:
        (own,) = (
            one for one in fields(import_module(TRAINING[recipe]).Config) if one.name == "report_to"
        )
        assert (own.default, own.metadata) == (shared.default, shared.metadata), recipe
