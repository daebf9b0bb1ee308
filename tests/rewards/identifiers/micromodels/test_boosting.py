"""The tables of a boosting machine predict what the machine predicts."""

import json
import math
from typing import Any

import numpy as np
import pytest

from rewards.identifiers.micromodels.boosting import (
    AdditiveModel,
    fit_additive,
    fit_machine,
    tables_of,
)

MODEL = AdditiveModel(
    levels=(0, 2),
    edges=(np.array([0.5]), np.array([])),
    scores=(np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[2.0, 0.0]])),
    intercept=np.array([0.0, 1.0]),
)


def features_and_levels(num_levels: int) -> tuple[Any, list[int]]:
    """Two features that tell the level with some noise, one that does not."""
    generator = np.random.default_rng(3)
    levels = generator.integers(0, num_levels, 80)
    noise = generator.normal(size=(80, 3))
    features = noise * 0.6 + levels[:, None] * np.array([1.0, -0.7, 0.0])
    return features, [int(level) for level in levels]


def test_probabilities_by_hand() -> None:
    # Below the cut: logits 1 + 2 and 1. On and above it: 0 + 2 and 3 + 1.
    low, high = math.exp(3), math.exp(2)
    found = MODEL.probabilities(np.array([[0.4, 9.0], [0.5, 9.0], [0.6, -9.0]]))
    assert found[0] == pytest.approx([low / (low + math.e), 0.0, math.e / (low + math.e)])
    assert found[1] == pytest.approx(
        [high / (high + math.exp(4)), 0.0, math.exp(4) / (high + math.exp(4))]
    )
    assert found[2] == pytest.approx(found[1])


def test_contributions_sum_to_0_over_the_levels() -> None:
    found = MODEL.contributions(np.array([[0.6, 0.0]]))
    assert found[0] == pytest.approx(np.array([[-1.5, 1.5], [1.0, -1.0]]))


@pytest.mark.parametrize("num_levels", [2, 3])
def test_tables_equal_the_library(num_levels: int) -> None:
    features, levels = features_and_levels(num_levels)
    machine = fit_machine(features, levels)
    model = tables_of(machine)
    on_the_cuts = np.stack([edges[:3] for edges in model.edges], axis=1)
    beyond = np.array([[-1e9, 1e9, 0.0], [1e9, -1e9, 0.0]])
    rows = np.concatenate([features, on_the_cuts, beyond])
    found = model.probabilities(rows)
    assert found[:, :num_levels] == pytest.approx(machine.predict_proba(rows), abs=1e-12)
    assert found[:, num_levels:].sum() == 0
    assert (found.argmax(axis=1) == machine.predict(rows)).all()
    assert (found[:80].argmax(axis=1) == levels).mean() > 0.7


def test_json_and_back_gives_the_same_bits() -> None:
    features, levels = features_and_levels(3)
    model = fit_additive(features, levels)
    again = AdditiveModel.from_row(json.loads(json.dumps(model.row())))
    assert (again.probabilities(features) == model.probabilities(features)).all()


def test_the_seed_decides_the_bags() -> None:
    features, levels = features_and_levels(3)
    first, second = (fit_additive(features, levels, seed=2**62 + 7).row() for _ in range(2))
    assert first == second
    assert first != fit_additive(features, levels, seed=1).row()


def test_a_single_level_needs_no_machine() -> None:
    model = fit_additive(np.zeros((4, 3)), [2, 2, 2, 2])
    assert model.probabilities(np.ones((2, 3))).tolist() == [[0.0, 0.0, 1.0]] * 2
    assert model.contributions(np.ones((1, 3))).tolist() == [[[0.0], [0.0], [0.0]]]


def test_features_that_never_change_give_the_shares() -> None:
    model = fit_additive(np.zeros((30, 3)), [0] * 20 + [1] * 10)
    assert model.probabilities(np.zeros((1, 3)))[0] == pytest.approx([2 / 3, 1 / 3, 0], abs=0.05)
