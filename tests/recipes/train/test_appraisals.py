"""`train.py appraisals`, `train.py alignment` and `evaluate.py alignment`, really run: tiny."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recipes.entry import run_evaluation, run_training
from recipes.train.alignment import Config as AlignmentConfig
from recipes.train.alignment import run as run_alignment
from recipes.train.appraisals import Config, run
from rewards.appraisals import evaluation as appraisal_evaluation
from rewards.appraisals.alignment.model import load_alignment
from rewards.appraisals.appraiser import load_appraiser
from rewriting.errors import UserError
from rewriting.runtime.training.log import Log
from tests.rewards.appraisals.test_prompts import write_t5
from tests.tiny_lm import write_tiny_encoder

PARTS = ["train"] * 4 + ["dev"] * 2 + ["test"] * 2
TOPICS = ("job", "cat", "exam", "car")


def record(number: int, split: str, topic: str) -> dict[str, Any]:
    sentences = [f"I lost my {topic} {number}.", "It was my fault, all of it!", "Why me?"]
    replies = [f"A {topic} {topic}, oh no.", "Not your fault at all!", "Rest a while."]
    target, observer = " ".join(sentences), " ".join(replies)
    full = f"target:\n\n{target}\n\nobserver:\n\n{observer}"

    def bounds(text: str) -> list[int]:
        return [full.index(text), full.index(text) + len(text)]

    return {
        "target_text": target,
        "observer_text": observer,
        "full_text": full,
        "spans": [
            [*bounds(sentences[0]), "Objective Experience"],
            [*bounds(sentences[1]), "Self-Other Agency"],
            [*bounds(replies[0]), "Pleasantness"],
            [*bounds(replies[1]), "Self-Other Agency"],
            [*bounds(replies[2]), "Advice"],
        ],
        "alignments": [
            [bounds(sentences[0]), bounds(replies[0])],
            [bounds(sentences[1]), bounds(replies[1])],
            [bounds(sentences[1]), bounds(replies[2])],
        ],
        "split": split,
        "id": f"{topic}-{number}",
        "seeker_id": f"{topic}-{number}",
    }


ROWS = [record(n, split, topic) for n, split in enumerate(PARTS) for topic in TOPICS]


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appraisal_evaluation, "RESAMPLES", 20)


@pytest.fixture
def data(jsonl: Callable[..., Path]) -> str:
    return str(jsonl(ROWS))


def flags(config: Any) -> list[str]:
    return [word for name, value in vars(config).items() for word in (f"--{name}", str(value))]


def test_the_head_and_the_alignment_and_their_tables(
    data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = str(write_tiny_encoder(tmp_path))
    runs = [tmp_path / "head", tmp_path / "alignment"]
    small: dict[str, Any] = {"data": data, "eval_every": 10, "save_every": 20, "batch_size": 16}
    head = Config(output=str(runs[0]), model=encoder, steps=40, learning_rate=0.03, **small)
    run_training(["appraisals", *flags(head)])
    run_training(
        [
            "alignment",
            *flags(AlignmentConfig(output=str(runs[1]), encoder=encoder, steps=40, **small)),
        ]
    )
    figures = json.loads((runs[0] / "model" / "results.json").read_text())["figures"]
    test = figures["results"]["test"]
    assert test["model"]["parts"]["accuracy"] > test["majority"]["parts"]["accuracy"]
    assert figures["units"] == {"train": 96, "dev": 48, "test": 48}
    card = (runs[0] / "model" / "README.md").read_text(encoding="utf-8")
    assert f"{test['model']['parts']['macro_f1']:.1f}" in card
    assert "python train.py appraisals --data" in card
    figures = json.loads((runs[1] / "model" / "results.json").read_text())["figures"]
    assert figures["pairs"]["train"] >= 11 * figures["aligned"]["train"]
    assert figures["aligned"] == {"train": 48, "dev": 24, "test": 24}
    assert load_alignment(str(runs[1] / "model")).thresholds == figures["thresholds"]

    out = tmp_path / "out.json"
    words = ["--data", data, "--similarity", encoder, "--json", str(out)]
    words += ["--appraisals", str(runs[0] / "model"), "--alignment", str(runs[1] / "model")]
    capsys.readouterr()
    run_evaluation(["alignment", *words])
    shown = capsys.readouterr().out
    assert "appraisals on" in shown
    assert "alignment on" in shown
    found = json.loads(out.read_text())
    assert found["appraisals"]["model"] == test["model"]
    difference = found["alignment"].pop("model minus similarity")["own"]
    assert set(found["alignment"]) == {"model", "model, called labels", "similarity"}
    own = {name: system["own"]["auroc"] for name, system in found["alignment"].items()}
    assert difference["auroc"] == pytest.approx(own["model"] - own["similarity"])
    for system in found["alignment"].values():
        assert {"auroc", "f1", "precision", "recall", "n", "aligned"} <= set(system["all"])
    with pytest.raises(SystemExit):
        run_evaluation(["alignment", *words])
    assert "--overwrite" in capsys.readouterr().err


def test_a_prompt_is_tuned_or_only_asked(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rewards.appraisals import prompts as appraisal_prompts
    from tests.rewards.appraisals.test_prompts import FILLERS

    # A tokenizer of characters cannot tell effort from events by the first token.
    defaults = appraisal_prompts.GapFiller.load.__func__.__kwdefaults__  # type: ignore[attr-defined]
    monkeypatch.setitem(defaults, "fillers", FILLERS)
    model = str(write_t5(tmp_path / "t5"))
    small: dict[str, Any] = {"data": data, "method": "prompt", "model": model, "shots": 1}
    asked = run(Config(output=str(tmp_path / "asked"), steps=0, **small))
    tuned = run(
        Config(
            output=str(tmp_path / "tuned"),
            steps=2,
            rank=2,
            batch_size=8,
            micro_batch_size=8,
            **small,
        )
    )
    assert (asked["step"], tuned["step"]) == (0, 2)
    for name in ("asked", "tuned"):
        again = load_appraiser(str(tmp_path / name / "model"))
        assert again.probabilities(["My fault."], ["target"]).sum() == pytest.approx(1.0)
    card = (tmp_path / "asked" / "model" / "README.md").read_text(encoding="utf-8")
    assert "untrained, calibrated, 1 example of each label" in card


@pytest.mark.parametrize("rank", [0, 2])
def test_a_stopped_alignment_run_goes_on_bit_for_bit(
    data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    small: dict[str, Any] = {
        "data": data,
        "encoder": str(write_tiny_encoder(tmp_path)),
        "rank": rank,
    }
    small |= {"steps": 3, "batch_size": 4, "save_every": 1, "eval_every": 1}
    figures = run_alignment(AlignmentConfig(output=str(tmp_path / "whole"), **small))
    add = Log.add

    def stopping(self: Log, row: dict[str, float]) -> None:
        if row["step"] == 2:
            raise KeyboardInterrupt
        add(self, row)

    cut = AlignmentConfig(output=str(tmp_path / "cut"), **small)
    monkeypatch.setattr(Log, "add", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_alignment(cut)
    monkeypatch.setattr(Log, "add", add)
    assert run_alignment(cut) == figures


def test_mistakes_are_told(data: str, tmp_path: Path, jsonl: Callable[..., Path]) -> None:
    with pytest.raises(UserError, match="head or prompt"):
        run(Config(output=str(tmp_path), data=data, method="magic"))
    with pytest.raises(UserError, match="untrained head knows nothing"):
        run(Config(output=str(tmp_path), data=data, steps=0))
    with pytest.raises(UserError, match="shots is 0 or more"):
        run(Config(output=str(tmp_path), data=data, method="prompt", shots=-1))
    bare = str(jsonl([row | {"alignments": []} for row in ROWS], "bare.jsonl"))
    with pytest.raises(UserError, match="holds no aligned pair"):
        run_alignment(AlignmentConfig(output=str(tmp_path), data=bare))
