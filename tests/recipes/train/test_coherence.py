"""`train.py coherence`, really run: on a tiny encoder, stopped and resumed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from recipes.entry import run_training
from recipes.train.coherence import Config, fitted_temperature, run, scores_of
from rewards.reading.sentence_pairs import SentencePair
from rewards.terms.coherence import Coherence, CoherenceModel
from rewriting.runtime.training.log import Log
from tests.rewards.terms.test_coherence import HandMade, dot_product_head
from tests.tiny_lm import write_tiny_encoder

TOPICS = ("job", "cat", "exam", "house", "mother", "sleep")
ROWS = [
    {
        "seeker_post": f"I lost my {topic} {n}.",
        "response_post": f"A {topic} {topic} gone. Oh {topic} {topic} {n}. So {topic} {topic}?",
    }
    for topic in TOPICS
    for n in range(8)
]


@pytest.fixture
def config(tmp_path: Path, jsonl: Callable[..., Path]) -> Config:
    return Config(
        output=str(tmp_path / "run"),
        data=str(jsonl(ROWS)),
        encoder=str(write_tiny_encoder(tmp_path)),
        hidden=8,
        steps=6,
        batch_size=16,
        learning_rate=0.01,
        eval_every=2,
        save_every=2,
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def test_a_run_leaves_a_model_that_works(config: Config, tmp_path: Path) -> None:
    flags = [word for name, value in vars(config).items() for word in (f"--{name}", str(value))]
    run_training(["coherence", *flags])
    folder = tmp_path / "run" / "model"
    figures = json.loads((folder / "results.json").read_text())["figures"]
    assert {row["split"] for row in figures["results"]} == {"dev", "test"}
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert f"{figures['results'][0]['auroc']:.1f}" in text
    assert "python train.py coherence --data" in text
    model = CoherenceModel.load(folder)
    assert model.temperature == figures["temperature"]
    (value,) = Coherence(model)(completions=["A job. A cat."], response_post=["A job."])
    assert value is not None
    assert 0 < value < 1


def test_a_stopped_run_goes_on_bit_for_bit(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = run(config)
    cut = Config(**{**vars(config), "output": str(tmp_path / "cut")})
    add = Log.add

    def stopping(self: Log, row: dict[str, float]) -> None:
        if row["step"] == 4:
            raise KeyboardInterrupt
        add(self, row)

    monkeypatch.setattr(Log, "add", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(cut)
    monkeypatch.setattr(Log, "add", add)
    assert run(cut) == figures
    for key, tensor in weights(tmp_path / "run").items():
        assert torch.equal(tensor, weights(tmp_path / "cut")[key])


PAIRS = [
    SentencePair("a cat", "my cat", True, "same", 1.0),
    SentencePair("a cat", "my car", False, "random", 1.0),
    SentencePair("a car", "my car", True, "same", 1.0),
    SentencePair("a cat", "your cat", False, "nearest", 1.0),
]


def test_the_figures_by_hand() -> None:
    model = CoherenceModel(HandMade(), dot_product_head())
    figures = scores_of(model, PAIRS)
    assert figures["accuracy"] == 75.0
    assert figures["auroc_random"] == 100.0
    assert figures["auroc_nearest"] == 50.0
    # Two bins: 1 of 1 against 0.018 the wrong way round, 2 of 3 against 0.982.
    assert figures["calibration_error"] == pytest.approx(
        100 * (0.01799 + (3 * 0.98201 - 2)) / 4, abs=0.01
    )


def test_overconfidence_is_cooled() -> None:
    """Right in 3 of 4 at a logit of ±4: the likeliest logit is log 3, the temperature 4 / log 3."""
    model = CoherenceModel(HandMade(), dot_product_head())
    assert fitted_temperature(model, PAIRS) == pytest.approx(4 / 1.0986, rel=0.02)
