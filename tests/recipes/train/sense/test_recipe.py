"""`train.py sense`, really run: two steps on a tiny encoder; its figures by hand."""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from recipes.entry import run_training
from recipes.train.sense import figures as figures_module
from recipes.train.sense import recipe
from recipes.train.sense.figures import gate_bar, measure
from recipes.train.sense.pages import SENTENCES_OF_PAGE, pages_of
from recipes.train.sense.recipe import Config, run
from rewards.reading.labelled import Page, welcome
from rewards.reading.sense_model import SenseModel, SenseReading
from tests.rewards.reading.tiny import write_tiny_bert


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bert(tmp_path_factory.mktemp("sense") / "encoder")


def few_pages(config: Config, split: str) -> list[Page]:
    return [Page("Rex died.", (("Poor Rex.", welcome()), ("So sad.", welcome())))] * 4


def config(encoder: Path, output: Path, **changes: Any) -> Config:
    settings: dict[str, Any] = {
        "output": str(output),
        "encoder": str(encoder),
        "layers": 1,
        "rank": 2,
        "max_tokens": 24,
        "epochs": 1.0,
        "batch_size": 2,
        "evaluations": 1,
    }
    return Config(**(settings | changes))


def test_a_run_leaves_a_model_with_its_card(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "pages_of", few_pages)
    monkeypatch.setattr(figures_module, "PARTS", ("sense",))
    settings = vars(config(encoder, tmp_path / "run"))
    run_training(["sense", *(w for k, v in settings.items() for w in (f"--{k}", str(v)))])
    folder = tmp_path / "run" / "model"
    figures = json.loads((folder / "results.json").read_text())["figures"]
    assert (figures["pages"], figures["sentences"]) == (4, 8)
    assert 0 <= figures["dev"]["machine"]["auroc"] <= 100
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in log] == [1, 2]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"AUROC {figures['dev']['sense']['auroc']:.1f}" in card
    assert "| stings |" in card
    assert 0 < SenseModel.load(folder).read([("Rex died.", "Poor Rex.")])[0].welcome < 1
    assert run(config(encoder, tmp_path / "run")) == figures  # a finished run is restored


class Fake:
    """Finds a sentence welcome if the post holds its first word."""

    bar = 0.5

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[SenseReading]:
        values = [0.9 if text.split()[0] in post else 0.2 for post, text in pairs]
        return [SenseReading(value, 1.0, 0.0, (0.0,) * 3, (0.0,) * 3) for value in values]


def test_the_figures_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"seeker_post": "Rex died.", "sentence": "Rex will be missed.", "label": "good"},
        {"seeker_post": "Rex died.", "sentence": "Sorry.", "label": "plain"},
        {"seeker_post": "Rex died.", "sentence": "Why did Tom die?", "label": "wrong"},
        {"seeker_post": "Rex died.", "sentence": "Rex or what?", "label": "hurtful"},
    ]
    path = tmp_path / "machine_sentences_dev.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    group = {
        "posts": ["Rex died.", "Rex won!"],
        "sentences": [
            {"text": "Rex was loved.", "mechanism": "reaction", "level": 2, "fits": [1, 0]}
        ],
    }
    (tmp_path / "fits_dev.jsonl").write_text(json.dumps(group) + "\n")
    lent = {
        "seeker_post": "Rex died.",
        "sentences": [
            {"text": "Rex mattered.", "belongs": True},
            {"text": "He is old.", "belongs": False},
        ],
    }
    (tmp_path / "lent_dev.jsonl").write_text(json.dumps(lent) + "\n")
    monkeypatch.setattr(figures_module, "SAMPLE", tmp_path)
    monkeypatch.setattr(figures_module, "PARTS", ())
    figures = measure(Fake(), "dev")  # type: ignore[arg-type]
    # good 0.9, plain 0.2 against wrong 0.2, hurtful 0.9: right, tie, tie, wrong.
    assert figures["machine"]["auroc"] == pytest.approx(50.0)
    assert figures["machine"]["n"] == 4
    # At a bar of 0.5 the plain sentence and the wrong one are stopped.
    assert figures["machine"]["stopped_right"] == figures["machine"]["stopped_wrong"] == 50.0
    assert figures["machine"]["welcome"] == {
        "good": 0.9,
        "plain": 0.2,
        "wrong": 0.2,
        "hurtful": 0.9,
    }
    assert figures["fits"]["welcome"] == {"fits": 0.9, "does_not_fit": 0.9}
    assert figures["fits"]["auroc"] == pytest.approx(50.0)
    assert figures["lent"]["auroc"] == pytest.approx(100.0)


def test_the_bar_stops_no_more_right_sentences_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ByLength(Fake):
        def read(self, pairs: Sequence[tuple[str, str]]) -> list[SenseReading]:
            values = [len(text) / 10 for _, text in pairs]
            return [SenseReading(value, 1.0, 0.0, (0.0,) * 3, (0.0,) * 3) for value in values]

    labels = ["good"] * 4 + ["wrong"]
    rows = [
        {"seeker_post": "A", "sentence": "x" * (number + 1), "label": label}
        for number, label in enumerate(labels)
    ]
    path = tmp_path / "machine_sentences_dev.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "fits_dev.jsonl").write_text("")
    (tmp_path / "lent_dev.jsonl").write_text("")
    monkeypatch.setattr(figures_module, "SAMPLE", tmp_path)
    monkeypatch.setattr(figures_module, "PARTS", ())
    model: Any = ByLength()
    assert gate_bar(model, 0.0) == pytest.approx(0.1)  # nothing right is below it
    assert gate_bar(model, 0.25) == pytest.approx(0.2)  # one of four is
    assert gate_bar(model, 0.5) == pytest.approx(0.3)


def test_the_bundled_pages() -> None:
    dev = pages_of(Config(), "dev")
    posts = [page.post for page in dev if page.post]
    assert len(posts) > 150
    assert all(len(page.sentences) <= SENTENCES_OF_PAGE for page in dev)
    assert pages_of(Config(), "dev") == dev  # the seed decides
    hurts = [label.hurts for page in dev if not page.post for _, label in page.sentences]
    assert set(hurts) == {0.0, 1.0}


def test_every_field_is_explained() -> None:
    assert all(field.metadata.get("help") for field in fields(Config))
