"""Grids of pairs, the rules on their features, thresholds: worked out by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rewards.appraisals.alignment.model import (
    FEATURES,
    AlignmentHead,
    SiameseAlignment,
    SimilarityAlignment,
    cosine_features,
    label_features,
    load_alignment,
)
from rewards.appraisals.alignment.pairs import Grid, Side, grids_of, moved_grids
from rewards.appraisals.sentence_states import SentenceStates
from rewriting.data.appraisals import APPRAISALS, AppraisedExchange, Span
from rewriting.errors import UserError
from tests.tiny_lm import write_tiny_encoder


def one_hot(label: str) -> tuple[float, ...]:
    return tuple(float(name == label) for name in APPRAISALS)


def grid_of(target: Sequence[str], observer: Sequence[str], group: str, **options: Any) -> Grid:
    labels = {"rest": "Advice", "fault": "Self-Other Agency"}
    sides = [
        Side(
            tuple(side),
            tuple(one_hot(labels.get(text, "Pleasantness")) for text in side),
            tuple(side),
        )
        for side in (target, observer)
    ]
    return Grid(*sides, options.get("aligned", frozenset()), group)


def test_an_exchange_becomes_a_grid() -> None:
    exchange = AppraisedExchange(
        "I failed. My fault.",
        "Not so. Rest.",
        (Span(10, 19, "Self-Other Agency"),),
        (Span(0, 7, "Self-Other Agency"), Span(8, 13, "Advice")),
        frozenset({(0, 0)}),
        "train",
        seeker_id="ann",
    )
    bare = AppraisedExchange("Oh.", "Ah.", (), (), frozenset(), "train")
    (grid,) = grids_of([exchange, bare])
    assert grid.target.spans == ("My fault.",)
    assert grid.target.sentences == ("I failed.", "My fault.")
    assert grid.gold() == [True, False]
    assert grid.advice() == [False, True]
    assert (grid.size, grid.group) == (2, "ann")


def test_moved_replies_fill_the_negatives_up() -> None:
    grids = [
        grid_of(["a", "b"], ["c", "rest"], "ann", aligned=frozenset({(0, 0)})),
        grid_of(["d", "e"], ["f", "g"], "bob", aligned=frozenset({(1, 1)})),
    ]
    moved = moved_grids(grids, negatives=11, seed=1)
    # 2 positives, 6 negatives of their own: 16 more in grids of 4.
    assert len(moved) == 4
    assert all(grid.moved and not any(grid.gold()) for grid in moved)
    own = {grid.target.spans: grid.observer.spans for grid in grids}
    assert all(own[grid.target.spans] != grid.observer.spans for grid in moved)
    assert moved == moved_grids(grids, negatives=11, seed=1)
    with pytest.raises(UserError, match="two seekers"):
        moved_grids(grids[:1])


def test_cosines_of_spans_and_texts() -> None:
    x, y = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    middle = torch.tensor([0.6, 0.8])
    found = cosine_features(torch.stack([x, y]), middle[None], x, y)
    assert found.shape == (2, 1, 4)
    assert found[0, 0].tolist() == pytest.approx([0.6, 0.0, 0.6, 0.0])
    assert found[1, 0].tolist() == pytest.approx([0.8, 1.0, 0.6, 0.0])


def test_labels_of_both_and_how_far_they_agree() -> None:
    found = label_features(
        torch.tensor([one_hot("Advice")]), torch.tensor([one_hot("Trope"), one_hot("Advice")])
    )
    assert found.shape == (1, 2, 19)
    assert found[0, :, -1].tolist() == [0.0, 1.0]
    assert found[0, 0].sum() == 2.0


def test_advice_has_a_rule_of_its_own() -> None:
    head = AlignmentHead()
    with torch.no_grad():
        head.rules.weight.zero_()
        head.rules.bias.copy_(torch.tensor([1.0, -3.0]))
    labels = label_features(
        torch.tensor([one_hot("Certainty")]),
        torch.tensor([one_hot("Trope"), one_hot("Advice"), tuple(0.5 for _ in APPRAISALS)]),
    )
    logits = head(torch.zeros(3, 4), labels.flatten(0, 1))
    assert logits.tolist() == [1.0, -3.0, -1.0]
    assert head.rules.weight.shape == (2, FEATURES)


def test_it_starts_as_the_plain_cosine() -> None:
    cosines = torch.zeros(2, 4)
    cosines[:, 0] = torch.tensor([0.9, 0.1])
    logits = AlignmentHead()(cosines, torch.zeros(2, 19))
    assert logits.tolist() == pytest.approx([1.5 * 4 * 0.9 - 4, 1.5 * 4 * 0.1 - 4])


class Words:
    """Two numbers: cats and cars."""

    def encode(self, texts: list[str], **_: Any) -> np.ndarray[Any, Any]:
        counts = np.array([[t.count("cat") + 1e-3, t.count("car") + 1e-3] for t in texts])
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_plain_similarity_with_a_threshold_for_each_kind() -> None:
    model = SimilarityAlignment(Words(), threshold=0.5)
    grid = Grid(
        Side(("a cat", "a car"), (one_hot("Pleasantness"),) * 2, ("a cat", "a car")),
        Side(("my cat", "feed the cat"), (one_hot("Trope"), one_hot("Advice")), ("x",)),
        frozenset(),
        "ann",
    )
    (scores,) = model.scores([grid])
    assert (scores > 0).tolist() == [[True, True], [False, False]]
    model.thresholds["advice"] = 1.1
    (scores,) = model.scores([grid])
    assert (scores > 0).tolist() == [[True, False], [False, False]]


def test_a_saved_model_gives_the_same_numbers(tmp_path: Path) -> None:
    states = SentenceStates.load(str(write_tiny_encoder(tmp_path)))
    head = AlignmentHead()
    with torch.no_grad():
        head.rules.weight.normal_(generator=torch.Generator().manual_seed(0))
    model = SiameseAlignment(states, head, thresholds={"empathy": 0.3, "advice": -1.0})
    model.save(tmp_path / "model")
    grids = [grid_of(["a sad cat", "fault"], ["oh dear", "rest"], "ann")]
    again = load_alignment(str(tmp_path / "model"))
    same: Tensor = again.scores(grids)[0]
    assert torch.equal(same, model.scores(grids)[0])
    assert again.thresholds == {"empathy": 0.3, "advice": -1.0}
    shared = SiameseAlignment.load(tmp_path / "model", states=states)
    assert shared.states is states
    tuned = SentenceStates.load(states.name, rank=2)  # trained for somebody else
    assert SiameseAlignment.load(tmp_path / "model", states=tuned).states is not tuned
    # The threshold of a kind is taken off its column alone.
    model.thresholds = {"empathy": 0.3, "advice": 0.0}
    change = same - model.scores(grids)[0]
    assert change[:, 0].tolist() == pytest.approx([0.0, 0.0])
    assert change[:, 1].tolist() == pytest.approx([1.0, 1.0])
