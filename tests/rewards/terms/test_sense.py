"""Sense by hand; its model in and out of a folder; its loss by hand."""

import copy
import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from rewards.named import Models, build_rewards
from rewards.reading.labelled import HURTFUL, WRONG, Label, Page, welcome
from rewards.reading.sense_model import SETTINGS, WEIGHTS, SenseModel, SenseReading, targets
from rewards.terms.sense import Sense
from rewriting.errors import UserError
from tests.rewards.reading.tiny import in_half_precision, write_tiny_bert
from tests.rewriting.runtime.files.test_model_files import unsealed

PAIRS = [("Rex died.", "Poor Rex."), ("Rex died.", "Why?"), ("I won.", "Poor Rex.")]


def reading(sense: float = 1.0, true: float = 1.0, hurts: float = 0.0) -> SenseReading:
    return SenseReading(sense, true, hurts, (0.0,) * 3, (0.0,) * 3)


class FakeModel:
    """Readings by hand. Keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[SenseReading]:
        self.asked += pairs
        known = {"Odd.": reading(sense=0.5), "Rude.": reading(hurts=0.75)}
        return [known.get(text, reading(true=0.8)) for _, text in pairs]


COLUMNS = {
    "completions": ["Hi. Odd. Rude.", "Hi.", "Hi. Ho."],
    "seeker_post": ["A", "B", "C"],
    "response_post": ["Hi.", "Hi.", "Hi."],
}


def test_the_worst_of_the_new_sentences_counts() -> None:
    model = FakeModel()
    found = Sense(model, floor=1)(**COLUMNS)  # type: ignore[arg-type]
    assert found == pytest.approx([0.25 - 1, 0.0, 0.8 - 1])
    assert model.asked == [("A", "Odd."), ("A", "Rude."), ("C", "Ho.")]


def test_the_column_says_what_is_new() -> None:
    columns = {"completions": ["Odd. Rude."], "seeker_post": ["A"], "response_post": [""]}
    found = Sense(FakeModel(), floor=1)(**columns, sentence=["Odd."])  # type: ignore[arg-type]
    assert found == pytest.approx([0.5 - 1])


def test_above_the_floor_nothing_is_lost_and_nothing_won() -> None:
    found = Sense(FakeModel(), floor=0.5)(**COLUMNS)  # type: ignore[arg-type]
    assert found == pytest.approx([0.25 / 0.5 - 1, 0.0, 0.0])  # 0.8 is above it
    assert Sense(FakeModel())(**COLUMNS) == [0.0, 0.0, 0.0]  # type: ignore[arg-type]
    for floor in (0, 1.5, True, "half"):
        with pytest.raises(UserError, match="floor is a probability"):
            Sense(FakeModel(), floor=floor)  # type: ignore[arg-type]


def test_the_term_by_name() -> None:
    rewards = build_rewards({"sense": {"weight": 2, "floor": 0.5}}, Models(sense=FakeModel()))
    scores = rewards.score(**COLUMNS)
    assert scores.totals == pytest.approx([2 * (0.5 - 1), 0.0, 0.0])


def test_the_loss_has_a_bound() -> None:
    class Certain(FakeModel):
        def read(self, pairs: Sequence[tuple[str, str]]) -> list[SenseReading]:
            return [reading(true=0.0) for _ in pairs]

    assert reading(0.5, 0.5, 0.5).welcome == pytest.approx(0.125)
    assert Sense(Certain())(**COLUMNS) == [-1.0, 0.0, -1.0]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny_bert(tmp_path_factory.mktemp("sense")))


@pytest.fixture
def model(encoder: str) -> SenseModel:
    return in_half_precision(SenseModel(encoder, rank=2, max_tokens=32, bar=0.1)).eval()


def test_a_saved_model_gives_the_same_numbers(model: SenseModel, tmp_path: Path) -> None:
    expected = [one.welcome for one in model.read(PAIRS)]
    model.save(tmp_path / "model")
    again = SenseModel.load(tmp_path / "model")
    assert [one.welcome for one in again.read(PAIRS)] == pytest.approx(expected, abs=1e-5)
    assert expected[0] != pytest.approx(expected[2], abs=1e-4)  # the post counts
    assert again.bar == 0.1
    assert not any(parameter.requires_grad for parameter in again.parameters())


def test_a_score_does_not_depend_on_the_company(model: SenseModel) -> None:
    together = model.read(PAIRS)
    model._known.forget()
    assert [model.read([pair])[0] for pair in reversed(PAIRS)] == together[::-1]
    in_batches = copy.copy(model)
    in_batches._known = in_batches._memory(3)
    for found, alone in zip(in_batches.read(PAIRS), together, strict=True):
        assert found.welcome == pytest.approx(alone.welcome, abs=1e-6)
        assert found.some == pytest.approx(alone.some, abs=1e-6)
    assert model.read([]) == []


def test_sentences_below_the_bar_do_not_fit(model: SenseModel) -> None:
    post, sentences = "Rex died.", ["Poor Rex.", "Why not?"]
    first, second = (one.welcome for one in model.read([(post, text) for text in sentences]))
    assert first != second
    model.bar = max(first, second)  # at the bar is not below it
    assert model.unfit(post, sentences) == [sentences[0] if first < second else sentences[1]]
    model.bar = 0.0
    assert model.unfit(post, sentences) == []


def test_what_a_label_asks_for() -> None:
    def known(label: Label) -> list[float | None]:
        return [None if math.isnan(value) else value for value in targets(label)]

    some, strong = [0.0, 1.0, 1.0], [None, 1.0, 0.0]
    assert known(welcome((0, 2, 1))) == [1.0, 1.0, 0.0, *some, *strong]
    assert known(WRONG) == [1.0, 0.0, None, 0.0, 0.0, 0.0, None, None, None]
    assert known(Label(hurts=1.0)) == [None, None, 1.0] + [None] * 6


def test_the_loss_by_hand(model: SenseModel) -> None:
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.tensor([0.0, 0.0, math.log(3), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    pages = [Page("A", (("a", HURTFUL), ("b", Label()))), Page("B", (("c", Label(sense=1.0)),))]
    total, count = model.loss(pages)
    # Hurts: −log 3/4 and three times −log 1/2 for its levels; nothing for b; −log 1/2 for c.
    assert total.item() == pytest.approx(-math.log(0.75) + 4 * math.log(2), rel=1e-5)
    assert count == 3


def test_training_lowers_the_loss(encoder: str) -> None:
    torch.manual_seed(0)
    model = SenseModel(encoder, rank=2, max_tokens=32)
    pages = [Page("Rex died.", (("Poor Rex.", welcome()), ("Well done.", WRONG)))]
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.02)
    losses = []
    for _ in range(8):
        total, _ = model.loss(pages)
        total.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total.item())
    assert losses[-1] < losses[0] - 0.5


def test_mistakes_are_named(model: SenseModel, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no sense model"):
        SenseModel.load(tmp_path)
    model.save(tmp_path)
    save_file(load_file(tmp_path / WEIGHTS) | {"tail": torch.zeros(1)}, tmp_path / WEIGHTS)
    with pytest.raises(UserError, match="has changed since it was saved"):
        SenseModel.load(tmp_path)
    unsealed(tmp_path / SETTINGS)
    with pytest.raises(UserError, match="tail is in its weights alone"):
        SenseModel.load(tmp_path)
    settings = json.loads((tmp_path / SETTINGS).read_text())
    assert settings["layers"] == 0
