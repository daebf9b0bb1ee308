"""Figures of appraisals and alignments, worked out by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from rewards.appraisals.alignment.pairs import Grid
from rewards.appraisals.evaluation import (
    alignment_difference,
    alignment_figures,
    appraisal_figures,
    best_threshold,
    fit_thresholds,
    majority,
    majority_by_role,
    word_weights,
)
from rewards.appraisals.units import Unit
from tests.rewards.appraisals.alignment.test_model import grid_of

UNITS = [
    Unit("it was my fault", "target", "Self-Other Agency", "ann"),
    Unit("all my own fault", "target", "Self-Other Agency", "ann"),
    Unit("you should rest", "observer", "Advice", "bob"),
    Unit("you should go", "observer", "Advice", "bob"),
    Unit("you should sleep", "observer", "Advice", "cat"),
]


def test_accuracy_and_f1_over_the_labels_that_occur() -> None:
    called = ["Self-Other Agency", "Trope", "Advice", "Advice", "Advice"]
    figures = appraisal_figures(UNITS, called)
    assert figures["accuracy"] == pytest.approx(80)
    # Agency 2·1 / (2 + 1), advice 1, trope 0.
    assert figures["macro_f1"] == pytest.approx(100 * (2 / 3 + 1 + 0) / 3)
    assert figures["f1"]["Self-Other Agency"] == pytest.approx(200 / 3)
    assert figures["count"]["Advice"] == 3
    low, high = figures["intervals"]["accuracy"]
    assert (low, high) == (50.0, 100.0)  # ann alone gives 50


def test_what_to_beat() -> None:
    assert majority(UNITS, UNITS[:1]) == ["Advice"]
    assert majority_by_role(UNITS, UNITS[1:3]) == ["Self-Other Agency", "Advice"]
    fresh = [Unit("you should eat", "observer", ""), Unit("my fault", "target", "")]
    assert word_weights(UNITS, fresh) == ["Advice", "Self-Other Agency"]
    # Nobody's peer has spoken yet, and only one thing was said.
    assert majority_by_role(UNITS[:2], UNITS[2:3]) == ["Self-Other Agency"]
    assert word_weights(UNITS[:2], fresh) == ["Self-Other Agency"] * 2


def test_the_threshold_with_the_best_f1_lies_between_scores() -> None:
    scores = np.array([0.9, 0.7, 0.5, 0.5, 0.1])
    # Calling two: F1 1; the border between 0.7 and 0.5.
    assert best_threshold(scores, np.array([1, 1, 0, 0, 0], dtype=bool)) == pytest.approx(0.6)
    # Equal scores are called together: 3 of 4 right, or 2 of 2 with one missed. 6/7 > 4/5.
    assert best_threshold(scores, np.array([1, 1, 1, 0, 0], dtype=bool)) == pytest.approx(0.3)


class Given:
    """Scores as they were given, less the thresholds."""

    name = "given"
    scale = 2.0

    def __init__(self, *scores: list[list[float]]) -> None:
        self.given = [torch.tensor(row) for row in scores]
        self.thresholds = {"empathy": 0.0, "advice": 0.0}

    def scores(self, grids: Sequence[Grid]) -> list[Tensor]:
        bars = torch.tensor([self.thresholds["empathy"], self.thresholds["advice"]])
        return [self.scale * (own - bars) for own, _ in zip(self.given, grids, strict=True)]


def test_thresholds_and_figures_by_kind() -> None:
    grids = [
        grid_of(["a", "b"], ["c", "rest"], "ann", aligned=frozenset({(0, 0), (1, 1)})),
        grid_of(["d"], ["e", "rest"], "bob"),
    ]
    model = Given([[0.8, 0.1], [0.4, 0.3]], [[0.6, 0.2]])
    fit_thresholds(model, grids)
    assert model.thresholds == pytest.approx({"empathy": 0.7, "advice": 0.25})
    figures = alignment_figures(model, grids)
    assert (figures["f1"], figures["precision"], figures["recall"]) == (100, 100, 100)
    assert (figures["n"], figures["aligned"]) == (6, 2)
    assert figures["advice"]["n"] == 3
    no_advice = grid_of(["a"], ["c", "d"], "ann", aligned=frozenset({(0, 0)}))
    alone = alignment_figures(Given([[0.8, 0.1]]), [no_advice])
    assert alone["advice"]["auroc"] is None  # JSON has no NaN
    model.thresholds["empathy"] = 0.5
    worse = alignment_figures(model, grids)
    assert worse["empathy"]["precision"] == 50
    assert worse["empathy"]["auroc"] == 100
    assert worse["f1"] == pytest.approx(80)
    best = Given([[0.8, 0.1], [0.4, 0.3]], [[0.6, 0.2]])
    best.thresholds = {"empathy": 0.7, "advice": 0.25}
    difference = alignment_difference(best, model, grids)
    assert difference["f1"] == pytest.approx(20)
    assert difference["auroc"] == pytest.approx(figures["auroc"] - worse["auroc"])
