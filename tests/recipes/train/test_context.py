"""`train.py context`, really run, on a tiny encoder: from files to an identifier by folder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recipes.entry import run_training
from recipes.train.context import Config, material_of, run
from rewards.identifiers import named
from rewards.identifiers.in_context.identifier import ContextualIdentifier
from rewards.identifiers.named import load_identifier
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from tests.recipes.words import Words
from tests.tiny_lm import write_tiny_encoder


def labelled(number: int, level: int) -> dict[str, Any]:
    rationales = {name: ["So sorry."] if level else [] for name in MECHANISMS}
    return {
        "seeker_post": f"I hurt and failed exam {number}.",
        "response_post": f"So sorry. Exam {number} again.",
        **dict.fromkeys(MECHANISMS, level),
        "rationales": rationales,
    }


SUPPORT = [labelled(number, 2 * (number % 2)) for number in range(40)]
CALM = [{"seeker_post": f"We bake {n} cakes.", "response_post": "Nice."} for n in range(30)]


@pytest.fixture
def config(tmp_path: Path, jsonl: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Config:
    plain = load_identifier
    monkeypatch.setattr(named, "check_name", lambda name: None)
    monkeypatch.setattr(
        named, "load_identifier", lambda name, **_: Words() if name == "words" else plain(name)
    )
    return Config(
        output=str(tmp_path / "run"),
        data=str(jsonl(SUPPORT, "support.jsonl")),
        neutral=str(jsonl(CALM, "calm.jsonl")),
        identifier="words",
        encoder=str(write_tiny_encoder(tmp_path)),
    )


def test_a_run_leaves_an_identifier_that_works(config: Config, tmp_path: Path) -> None:
    run_training(["context", *(f"--{name}={value}" for name, value in vars(config).items())])
    folder = tmp_path / "run" / "model"
    figures = json.loads((folder / "results.json").read_text())["figures"]
    assert figures["need"][config.neutral]["posts"] == 30
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "python train.py context --data" in card
    assert f"moved to another post: {figures['fit_auroc']['reply']:.1f} of the" in card
    identifier = named.load_identifier(str(folder))
    assert isinstance(identifier, ContextualIdentifier)
    hurt, calm = identifier.assess(
        ["I hurt and failed exam 7.", "We bake 7 cakes."], ["So sorry. Exam 7 again."] * 2
    )
    assert hurt.empathy > 0
    assert calm.empathy == 0
    assert calm.expected_empathy < hurt.expected_empathy


def test_emotions_part_a_neutral_source(config: Config, jsonl: Callable[..., Path]) -> None:
    rows = [
        {"seeker_post": post, "response_post": "Oh.", "emotion": emotion}
        for post, emotion in (("We won!", "joyful"), ("She died.", "sad"), ("Grr.", "angry"))
    ]
    config.neutral = str(jsonl(rows, "dialogues.jsonl"))
    material = material_of(config)
    assert list(material.neutral.values()) == [["We won!"]]
    assert material.painful == ["She died."]


def test_mistakes_are_told(config: Config, jsonl: Callable[..., Path]) -> None:
    few = Config(**vars(config) | {"neutral": str(jsonl(CALM[:3], "few.jsonl"))})
    with pytest.raises(UserError, match="3 different posts that call for no empathy are too few"):
        run(few)
    with pytest.raises(UserError, match="passing is a share"):
        run(Config(passing=1.5))
    config.data = str(jsonl([labelled(n, 0) for n in range(20)], "plain.jsonl"))
    with pytest.raises(UserError, match="too few replies"):
        run(config)
