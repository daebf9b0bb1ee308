"""Heads that are fitted to the end on toy vectors."""

import math

import pytest
import torch
from torch import Tensor, nn

from rewards.reading.form import fit_form, fit_need, fit_worth

WORDS = ("sorry", "see", "why", "very", "calm")


class Toy(nn.Module):
    """Unit vectors of which of five words a text has, and heads as a reader has them."""

    def __init__(self) -> None:
        super().__init__()
        self.form = nn.Sequential(nn.Dropout(0.5), nn.Linear(len(WORDS), 6))
        self.need = nn.Linear(len(WORDS), 1)
        self.sizes: list[int] = []

    def encode(self, texts: list[str]) -> Tensor:
        self.sizes.append(len(texts))
        rows = torch.tensor([[float(word in text) for word in WORDS] for text in texts])
        return nn.functional.normalize(rows, dim=-1)


SENTENCES = [
    ("sorry", (1, 0, 0), 1.0),
    ("very sorry", (2, 0, 0), 1.0),
    ("see", (0, 1, 0), 1.0),
    ("very see", (0, 2, 0), 1.0),
    ("why", (0, 0, 1), 1.0),
    ("very why", (0, 0, 2), 1.0),
    ("calm", (0, 0, 0), 1.0),
    ("calm very", (0, 0, 0), 1.0),
] * 100


@pytest.fixture
def reader() -> Toy:
    return Toy().train()


def test_forms_are_told_apart(reader: Toy) -> None:
    fit_form(reader, SENTENCES)  # type: ignore[arg-type]
    reader.eval()
    with torch.no_grad():
        for text, levels, _ in SENTENCES[:8]:
            form = reader.form(reader.encode([text]))[0].tolist()
            for level, some, strong in zip(levels, form[:3], form[3:], strict=True):
                assert (some > 0) == (level > 0), text
                if level:
                    assert (strong > 0) == (level > 1), text
    assert max(reader.sizes) == 256  # long lists are encoded in parts


def test_weights_of_sentences_count() -> None:
    """One text with both labels: its logit goes to the log of their weights' ratio, but for the
    penalty, which the bias is free of."""

    def logit(some: float, none: float) -> float:
        reader = Toy()
        rows = [("sorry", (1, 1, 1), some), ("sorry", (0, 0, 0), none), ("sorry", (2, 2, 2), 1.0)]
        fit_form(reader, rows)  # type: ignore[arg-type]
        with torch.no_grad():
            return float(reader.eval().form(reader.encode(["sorry"]))[0, 0])

    assert logit(some=5.0, none=2.0) == pytest.approx(math.log(3), abs=0.02)
    assert logit(some=1.0, none=8.0) == pytest.approx(-math.log(4), abs=0.02)


def test_need_is_told_and_both_sides_weigh_alike(reader: Toy) -> None:
    fit_need(reader, ["sorry why", "why"] * 90, ["calm"] * 20)  # type: ignore[arg-type]
    with torch.no_grad():
        troubled, calm = reader.need(reader.encode(["why", "calm"]))[:, 0].tolist()
    assert troubled > 0 > calm


def test_a_rare_side_is_not_outvoted(reader: Toy) -> None:
    """Equal texts on both sides: the odds are even, however many posts each has."""
    fit_need(reader, ["why"] * 30, ["why"] * 3)  # type: ignore[arg-type]
    with torch.no_grad():
        assert float(reader.need(reader.encode(["why"]))) == pytest.approx(0.0, abs=1e-3)


class WordEncoder(nn.Module):
    """Unit vectors of which of some words a text has."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.words, self.width = words, len(words)

    def forward(self, texts: list[str]) -> Tensor:
        rows = torch.tensor([[float(word in text) for word in self.words] for text in texts])
        return nn.functional.normalize(rows, dim=-1)


class Worthy(nn.Module):
    """A reader that knows three words, with a second opinion that knows two others, or none."""

    def __init__(self, second: bool) -> None:
        super().__init__()
        self.encode = WordEncoder("dog", "sorry", "spoon")
        self.worth = nn.Linear(3, 1)
        self.second: nn.Module | None = nn.Module() if second else None
        if self.second is not None:
            self.second.encode = WordEncoder("grief", "captain")
            self.second.worth = nn.Linear(2, 1, bias=False)

    def log_odds(self, text: str) -> float:
        with torch.no_grad():
            found = self.worth(self.encode([text]))
            if self.second is not None:
                found = found + self.second.worth(self.second.encode([text]))
        return float(found[0, 0])


ANSWERS = ["dog grief", "dog"] * 40
DECOYS = [(0.5, ["sorry"] * 7), (0.5, ["spoon captain"] * 20)]


@pytest.mark.parametrize("second", [False, True])
def test_answers_are_told_from_decoys(second: bool) -> None:
    reader = Worthy(second).train()
    fit_worth(reader, ANSWERS, DECOYS)  # type: ignore[arg-type]
    assert not reader.training
    assert reader.log_odds("dog") > 0 > reader.log_odds("sorry")
    assert reader.log_odds("spoon captain") < 0
    if second:  # what the reader itself has no word for
        assert reader.log_odds("grief") > reader.log_odds("captain")


def test_a_group_of_decoys_weighs_by_its_share_and_not_by_its_size() -> None:
    """One text for everybody: its log-odds are those of the weights, whatever the vectors say."""
    reader = Worthy(second=True)
    fit_worth(reader, ["dog"] * 10, [(0.25, ["dog"] * 3), (0.25, ["dog"] * 90)])  # type: ignore[arg-type]
    assert reader.log_odds("dog") == pytest.approx(math.log(2), abs=0.02)
