"""`train.py micromodels`, really run: on a tiny encoder and a small labelled file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recipes.entry import run_training
from recipes.train.micromodels import THRESHOLDS, Config, run
from rewards.identifiers.named import load_identifier
from rewriting.errors import UserError
from tests.tiny_lm import write_tiny_encoder

KINDS: dict[str, tuple[int, int, int]] = {
    "Go to the gym {n}.": (0, 0, 0),
    "I am so sorry {n}.": (2, 0, 0),
    "I know {n} too well.": (0, 1, 0),
    "Why {n}, why, why?": (0, 0, 2),
}
NAMES = ("emotional_reactions", "interpretations", "explorations")


def row(text: str, levels: tuple[int, int, int], number: int) -> dict[str, Any]:
    response = text.format(n=number)
    by_name = dict(zip(NAMES, levels, strict=True))
    rationales = {name: [response] if level else [] for name, level in by_name.items()}
    return {
        "seeker_post": f"I failed exam {number}.",
        "response_post": f"Hm. {response}",
        **by_name,
        "rationales": rationales,
    }


ROWS = [row(text, levels, n) for n in range(24) for text, levels in KINDS.items()]


@pytest.fixture
def config(tmp_path: Path, jsonl: Callable[..., Path]) -> Config:
    encoder = write_tiny_encoder(tmp_path)
    return Config(output=str(tmp_path / "run"), data=str(jsonl(ROWS)), encoder=str(encoder))


def test_a_run_leaves_a_model_that_works(config: Config, tmp_path: Path) -> None:
    flags = [f"--{name}={value}" for name, value in vars(config).items()]
    run_training(["micromodels", *flags])
    folder = tmp_path / "run" / "model"
    figures = json.loads((folder / "results.json").read_text())["figures"]
    systems = ["micromodels", "majority", "tf-idf logistic regression"]
    assert [(r["system"], r["split"]) for r in figures["results"]] == [
        (system, split) for split in ("dev", "test") for system in systems
    ]
    test = figures["results"][3]["figures"]
    assert set(test["explorations"]) == {"accuracy", "macro_f1", "token_f1", "iou_f1", "n"}
    assert test["explorations"]["accuracy"] > 80
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert f"| {test['explorations']['macro_f1']:.1f} |" in text
    assert "python train.py micromodels --data" in text
    assert "overwrite" not in text
    model = load_identifier(str(folder))
    (found,) = model.assess(["x"], ["Hm. Why 3, why, why?"])
    assert found.judgements["explorations"].level == 2
    assert "Why 3, why, why?" in found.judgements["explorations"].rationales
    with pytest.raises(UserError, match=r"exists. Pass --overwrite"):
        run(config)


def test_dev_chooses_calls_and_resampling_gives_a_spread(config: Config) -> None:
    config.tune, config.runs, config.max_rows = True, 2, 40
    figures = run(config)
    assert set(figures["thresholds"].values()) <= set(THRESHOLDS)
    assert {len(offsets) for offsets in figures["offsets"].values()} == {3}
    mean, deviation = figures["resampled"]["mean"], figures["resampled"]["deviation"]
    assert 0 < mean["interpretations"]["accuracy"] <= 100
    assert deviation["interpretations"]["accuracy"] >= 0


def test_three_seeds_need_no_rationales(config: Config, jsonl: Callable[..., Path]) -> None:
    rows = [{key: value for key, value in row.items() if key != "rationales"} for row in ROWS]
    config.data = str(jsonl(rows, "levels.jsonl"))
    with pytest.raises(UserError, match="no rationale of emotional_reactions"):
        run(config)
    config.seeds = "three"
    assert run(config)["seeds"] == dict.fromkeys(NAMES, 3)


def test_data_without_levels_is_refused(config: Config, jsonl: Callable[..., Path]) -> None:
    rows = [{key: row[key] for key in ("seeker_post", "response_post")} for row in ROWS]
    config.data = str(jsonl(rows, "plain.jsonl"))
    with pytest.raises(UserError, match=r"too few exchanges with levels to learn from \(train 0"):
        run(config)
