"""Kindness by hand; its model in and out of a folder."""

import copy
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from rewards.named import Models, build_rewards
from rewards.terms.kindness import SETTINGS, WEIGHTS, Kindness, KindnessModel
from rewriting.errors import UserError
from tests.rewards.reading.tiny import in_half_precision, write_tiny_bert
from tests.rewriting.runtime.files.test_model_files import unsealed

SENTENCES = ["Your own fault.", "I am sorry.", "Take care."]


class FakeModel:
    """How much a sentence hurts, by hand. Keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def probabilities(self, sentences: Sequence[str]) -> list[float]:
        self.asked += sentences
        return [{"Idiot.": 0.9, "Cheer up.": 0.4}.get(text, 0.1) for text in sentences]


COLUMNS = {
    "completions": ["Hi. Cheer up. Idiot.", "Idiot.", "Hi. Cheer up.", "Hi."],
    "response_post": ["Hi.", "Idiot.", "Hi.", "Hi. Ho."],
}


def test_the_worst_of_the_new_sentences_counts() -> None:
    model = FakeModel()
    # The original response is not judged, however rude: its author is a person.
    assert Kindness(model)(**COLUMNS) == [-0.9, 0.0, -0.4, 0.0]  # type: ignore[arg-type]
    assert model.asked == ["Cheer up.", "Idiot.", "Cheer up."]


def test_the_column_says_what_is_new() -> None:
    columns = {"completions": ["Cheer up. Idiot."], "response_post": [""]}
    assert Kindness(FakeModel())(**columns, sentence=["Cheer up."]) == [-0.4]  # type: ignore[arg-type]


def test_the_term_by_name() -> None:
    rewards = build_rewards({"kindness": 2}, Models(kindness=FakeModel()))
    scores = rewards.score(**COLUMNS, seeker_post=["Help."] * 4)
    assert scores.terms == {"kindness": [-0.9, 0.0, -0.4, 0.0]}
    assert scores.totals == [-1.8, 0.0, -0.8, 0.0]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_bert(tmp_path_factory.mktemp("kindness")))


@pytest.fixture
def model(encoder: str) -> KindnessModel:
    return in_half_precision(KindnessModel(encoder, rank=2, max_tokens=32, bar=0.7))


def test_a_saved_model_gives_the_same_numbers(model: KindnessModel, tmp_path: Path) -> None:
    expected = model.probabilities(SENTENCES)
    model.save(tmp_path / "model")
    again = KindnessModel.load(tmp_path / "model")
    assert again.probabilities(SENTENCES) == pytest.approx(expected, abs=1e-5)
    assert max(expected) - min(expected) > 0.01  # not one number for everything
    assert again.bar == 0.7
    assert not any(parameter.requires_grad for parameter in again.parameters())
    names = set(load_file(tmp_path / "model" / WEIGHTS))
    assert {"head.weight", "head.bias"} < names
    assert all("lora" in name for name in names - {"head.weight", "head.bias"})


def test_a_score_does_not_depend_on_the_company(model: KindnessModel) -> None:
    together = model.probabilities(SENTENCES)
    model._known.forget()
    assert [model.probabilities([text])[0] for text in reversed(SENTENCES)] == together[::-1]
    in_batches = copy.copy(model)
    in_batches._known = in_batches._memory(3)
    assert in_batches.probabilities(SENTENCES) == pytest.approx(together, abs=1e-6)


def test_a_blank_sentence_hurts_nobody_and_long_ones_are_cut(model: KindnessModel) -> None:
    with torch.no_grad():
        model.head.bias.fill_(9.0)
    assert model.probabilities(["", " \n"]) == [0.0, 0.0]
    assert model.probabilities([]) == []
    first, second = model.probabilities(["a" * 32 + "b", "a" * 32 + "c"])
    assert first == second > 0.0


def test_mistakes_are_named(model: KindnessModel, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no kindness model"):
        KindnessModel.load(tmp_path)
    model.save(tmp_path)
    save_file(load_file(tmp_path / WEIGHTS) | {"tail": torch.zeros(1)}, tmp_path / WEIGHTS)
    with pytest.raises(UserError, match="has changed since it was saved"):
        KindnessModel.load(tmp_path)
    unsealed(tmp_path / SETTINGS)
    with pytest.raises(UserError, match="tail is in its weights alone"):
        KindnessModel.load(tmp_path)


def test_the_settings_are_readable(model: KindnessModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    unsealed(tmp_path / SETTINGS)
    settings = json.loads((tmp_path / SETTINGS).read_text())
    assert settings == {
        "encoder": model.encode.name,
        "rank": 2,
        "max_tokens": 32,
        "layers": 0,
        "bar": 0.7,
    }


def test_only_layers_that_are_there_can_be_used(model: KindnessModel) -> None:
    name = model.encode.name
    assert len(KindnessModel(name, rank=2, layers=1).encode.encoder.encoder.layer) == 1
    for layers in (-1, 2):
        with pytest.raises(UserError, match="has 1 layers, so layers is 0 to 1"):
            KindnessModel(name, rank=2, layers=layers)


def test_sentences_from_the_bar_on_are_hurtful(model: KindnessModel) -> None:
    sentences = ["You fool.", "Dear you."]
    first, second = model.probabilities(sentences)
    assert first != second
    model.bar = max(first, second)
    assert model.hurtful(sentences) == [sentences[0] if first > second else sentences[1]]
    model.bar = 1.0
    assert model.hurtful(sentences) == []
