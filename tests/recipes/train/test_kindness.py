"""`train.py kindness`, really run: two steps on a tiny encoder; its figures by hand."""

import json
import math
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch

from recipes.entry import run_training
from recipes.shared.kindness_sentences import Sentence
from recipes.train.kindness import (
    Config,
    bar_for,
    counterfactual_sentences,
    hurt_loss,
    measure,
    run,
)
from rewards.terms.kindness import KindnessModel
from tests.recipes.train.small import SMALL
from tests.rewards.reading.tiny import write_tiny_bert

ROWS = [
    {"id": str(n), "text": f"You {word} {n}.", "kind": kind, "hurts": kind == "blame"}
    for n in range(4)
    for word, kind in (("fool", "blame"), ("dear", "warmth"))
]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder and with sentences."""
    folder = tmp_path_factory.mktemp("kindness")
    write_sentences(folder)
    return folder


def write_sentences(folder: Path) -> None:
    write_tiny_bert(folder / "encoder")
    for split, rows in (("train", ROWS), ("dev", ROWS[:6])):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"kindness_{split}.jsonl").write_text(text)


def config(given: Path, output: Path, **changes: Any) -> Config:
    settings: dict[str, Any] = {
        "output": str(output),
        "data": str(given),
        "counterfactuals": "",
        "encoder": str(given / "encoder"),
        **SMALL,
    }
    return Config(**(settings | changes))


@pytest.fixture(scope="module")
def trained(given: Path) -> Path:
    settings = vars(config(given, given / "run"))
    flags = [w for k, v in settings.items() if k != "train_on_dev" for w in (f"--{k}", str(v))]
    run_training(["kindness", *flags])
    return given / "run"


def test_a_run_leaves_a_model_with_its_card(trained: Path) -> None:
    folder = trained / "model"
    figures = json.loads((folder / "results.json").read_text())["figures"]
    assert figures["sentences"] == 8
    assert figures["dev"]["n"] == 6
    assert figures["dev"]["stopped_kind"] == 0.0  # 3 % of three sentences is none
    log = [json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in log] == [1, 2]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"AUROC {figures['dev']['auroc']:.1f}" in card
    assert f"| blame | {figures['dev']['stopped_by_kind']['blame']:.0f} |" in card
    model = KindnessModel.load(folder)
    assert model.bar == figures["bar"]
    assert all(0 < value < 1 for value in model.probabilities(["You fool 1.", "You dear 1."]))


def test_options_of_a_run(given: Path, trained: Path, tmp_path: Path) -> None:
    first = json.loads((trained / "model" / "results.json").read_text())["figures"]
    assert run(config(given, trained)) == first  # a finished run is restored
    figures = run(config(given, tmp_path / "run", train_on_dev=True, bar=0.9))
    assert (figures["sentences"], figures["bar"]) == (14, 0.9)
    card = (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert "dev figures flatter" in card


def test_sentences_of_the_counterfactuals() -> None:
    found = counterfactual_sentences("sample:counterfactuals_dev")
    assert len(found) == 45 * 7  # six kind ones and a hurtful one for each post
    assert sum(row.hurts for row in found) == 45
    assert {row.kind for row in found if row.hurts} == {"hurtful"}
    assert counterfactual_sentences("") == []


class Fake:
    """Reads the probability that a sentence hurts off its last word."""

    bar = 0.5

    def __call__(self, texts: Sequence[str]) -> torch.Tensor:
        return torch.tensor([math.log(p / (1 - p)) for p in self.probabilities(texts)])

    def probabilities(self, texts: Sequence[str]) -> list[float]:
        return [float(text.split()[-1]) for text in texts]


JUDGED = [
    Sentence("fool 0.9", True, "blame"),
    Sentence("joke 0.3", True, "mockery"),
    Sentence("joke 0.5", True, "mockery"),
    Sentence("dear 0.6", False, "warmth"),
    Sentence("dear 0.1", False, "warmth"),
    Sentence("dear 0.2", False, "warmth"),
    Sentence("dear 0.4", False, "warmth"),
]


def test_the_figures_by_hand() -> None:
    found = measure(Fake(), JUDGED)  # type: ignore[arg-type]
    # Pairs of a hurtful and a kind sentence in order: 4 with 0.9, 2 with 0.3, 3 with 0.5, of 12.
    assert found["auroc"] == pytest.approx(75.0)
    assert found["stopped_hurtful"] == pytest.approx(200 / 3)  # a probability at the bar is stopped
    assert found["stopped_kind"] == pytest.approx(25.0)
    assert found["stopped_by_kind"] == pytest.approx({"blame": 100, "mockery": 50, "warmth": 25})
    assert found["n"] == 7


@pytest.mark.parametrize(
    ("false_alarms", "bar"),
    [(0.0, 0.6), (0.2, 0.6), (0.25, 0.4), (0.5, 0.2), (0.75, 0.1)],
)
def test_the_bar_stops_no_more_kind_sentences_than_allowed(false_alarms: float, bar: float) -> None:
    found = bar_for(Fake(), JUDGED, false_alarms)  # type: ignore[arg-type]
    assert found == pytest.approx(bar, abs=1e-5)
    kind = [float(row.text.split()[-1]) for row in JUDGED if not row.hurts]
    assert sum(p >= found for p in kind) <= false_alarms * len(kind)


def test_the_loss_without_smoothing_by_hand() -> None:
    rows = [Sentence("a 0.8", True, ""), Sentence("b 0.8", False, "")]
    total, count = hurt_loss(Fake(), rows, 0.0)  # type: ignore[arg-type]
    assert count == 2
    assert total.item() == pytest.approx(-math.log(0.8) - math.log(0.2), rel=1e-5)


def test_a_smoothed_label_is_best_met_short_of_certainty() -> None:
    def loss(probability: float) -> float:
        return hurt_loss(Fake(), [Sentence(f"a {probability}", True, "")], 0.1)[0].item()  # type: ignore[arg-type]

    assert loss(0.9) < min(loss(0.8), loss(0.97))
    assert loss(0.9) == pytest.approx(-0.9 * math.log(0.9) - 0.1 * math.log(0.1), rel=1e-5)


def test_a_missing_file_is_one_line(
    given: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["kindness", "--data", str(tmp_path), "--encoder", str(given / "encoder")]
    with pytest.raises(SystemExit) as stop:
        run_training([*arguments, "--output", str(tmp_path / "run")])
    assert stop.value.code == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "kindness_dev.jsonl: there is no such file; --data names the folder" in error


def test_every_field_is_explained() -> None:
    assert all(field.metadata.get("help") for field in fields(Config))
