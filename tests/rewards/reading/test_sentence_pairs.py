"""Negatives are what their kind says, and weigh as much as the positives."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from rewards.reading.sentence_pairs import KINDS, make_pairs
from rewriting.exchange import Exchange

TOPICS = ("cat", "car", "job")
EXCHANGES = [
    Exchange(
        f"My {topic} number {n}.",
        f"A {topic} is hard {n}. I had a {topic} too {n}. Tell me of the {topic} {n}.",
        seeker_id=f"{topic}{n}",
    )
    for n in range(12)  # more of a topic than there are neighbours
    for topic in TOPICS
]


def embed(texts: Sequence[str]) -> Tensor:
    rows = [[float(topic in text) for topic in TOPICS] for text in texts]
    return torch.tensor(rows) + 1e-3 * torch.rand(len(rows), 3)


def number_of(text: str) -> str:
    return text.rstrip(".").split()[-1]


def topic_of(text: str) -> str:
    return next(topic for topic in TOPICS if topic in text)


def test_every_positive_has_its_negatives() -> None:
    pairs = make_pairs(EXCHANGES, embed, pairs_per_response=2)
    positives = [pair for pair in pairs if pair.same]
    negatives = [pair for pair in pairs if not pair.same]
    assert len(positives) == 2 * len(EXCHANGES)
    for pair in positives:
        assert (topic_of(pair.first), number_of(pair.first)) == (
            topic_of(pair.second),
            number_of(pair.second),
        )
    for pair in negatives:
        same_topic = topic_of(pair.first) == topic_of(pair.second)
        assert not (same_topic and number_of(pair.first) == number_of(pair.second))
        assert same_topic or pair.kind == "random"
    assert {pair.kind for pair in negatives} == set(KINDS)
    assert sum(pair.weight for pair in negatives) == pytest.approx(len(positives))


def test_the_seed_decides() -> None:
    torch.manual_seed(0)
    first = make_pairs(EXCHANGES, embed, seed=1)
    torch.manual_seed(0)
    assert make_pairs(EXCHANGES, embed, seed=1) == first
    torch.manual_seed(0)
    assert make_pairs(EXCHANGES, embed, seed=2) != first


def test_the_same_words_are_no_negative() -> None:
    texts = ["I am sorry. What now?", "I am sorry. Why so?", "I AM sorry. Who left?"]
    exchanges = [Exchange(f"seeker {n}", text) for n, text in enumerate(texts)]
    pairs = make_pairs(exchanges, lambda texts: torch.ones(len(texts), 2))
    assert any(not pair.same for pair in pairs)
    for pair in pairs:
        assert pair.first.lower() != pair.second.lower()


def test_too_little_to_choose_from_gives_no_pairs() -> None:
    assert make_pairs(EXCHANGES[:1], embed) == []
    assert make_pairs([Exchange("a", "One."), Exchange("b", "Two.")], embed) == []
