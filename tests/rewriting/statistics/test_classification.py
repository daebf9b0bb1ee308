"""Accuracy, F1 and AUROC by hand; the fast ones for draws against scikit-learn's."""

import math

import numpy as np
import pytest
from sklearn.metrics import f1_score

from rewriting.statistics.classification import (
    accuracy,
    auroc,
    confusion,
    label_f1,
    macro_f1,
    macro_f1_of_counts,
    rank_auroc,
    weighted_f1,
    weighted_f1_of_counts,
)

GOLD, CALLED = [0, 0, 0, 1, 2], [0, 0, 1, 1, 0]


def test_accuracy_by_hand() -> None:
    assert accuracy(GOLD, CALLED) == 3 / 5


def test_macro_f1_by_hand() -> None:
    # Level 0: 2 hits, 3 + 3 → 4/6. Level 1: 1 hit, 1 + 2 → 2/3. Level 2: no hit, 1 + 0 → 0.
    assert macro_f1(GOLD, CALLED) == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)


def test_a_level_that_nobody_speaks_of_does_not_count() -> None:
    assert macro_f1([0, 1], [0, 1]) == 1
    assert macro_f1([0, 0], [0, 1]) == pytest.approx((2 / 3 + 0) / 2)


def test_gold_and_called_change_places_without_harm() -> None:
    assert macro_f1(GOLD, CALLED) == macro_f1(CALLED, GOLD)


def test_lengths_have_to_agree() -> None:
    with pytest.raises(ValueError, match="inconsistent"):
        accuracy([0, 1], [0])


def test_weighted_f1_by_hand() -> None:
    gold, predicted = [0, 0, 0, 1, 2], [0, 0, 1, 0, 2]
    # F1 of level 0: 2 hits, 3 times there, 3 times called: 2/3. Of level 1: 0. Of level 2: 1.
    assert weighted_f1(gold, predicted) == pytest.approx((3 * 2 / 3 + 0 + 1) / 5)


def test_a_level_that_people_never_show_has_no_weight() -> None:
    assert weighted_f1([0, 0], [0, 2]) == pytest.approx(2 / 3)


def test_auroc_by_hand() -> None:
    gold, scores = [True, True, False, False], [3, 2, 1, 2]
    # Pairs: (3,1) above, (3,2) above, (2,1) above, (2,2) tie.
    assert auroc(gold, scores) == pytest.approx(3.5 / 4)
    # The tie now counts as much as the three others together.
    assert auroc(gold, scores, [1, 3, 1, 3]) == pytest.approx((1 + 3 + 3 + 9 / 2) / 16)
    assert math.isnan(auroc([True, True], [1, 2]))
    assert math.isnan(auroc([False, False], [1, 2]))


def test_ranks_give_the_same_auroc() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        gold, scores = generator.random(50) < 0.3, generator.integers(0, 9, 50) / 3
        assert rank_auroc(gold, scores) == pytest.approx(auroc(gold, scores), abs=1e-12)
    assert math.isnan(rank_auroc(np.ones(3, bool), np.arange(3.0)))


def test_counts_give_the_same_f1() -> None:
    generator = np.random.default_rng(0)
    for rows in (3, 40):  # of three rows some labels are nobody's
        for gold, called in generator.integers(0, 4, (20, 2, rows)):
            counts = confusion(gold, called, 4)
            assert macro_f1_of_counts(counts) == pytest.approx(macro_f1(gold, called), abs=1e-12)
            expected = weighted_f1(gold, called)
            assert weighted_f1_of_counts(counts) == pytest.approx(expected, abs=1e-12)
            for label, found in enumerate(label_f1(counts)):
                assert found == pytest.approx(
                    f1_score(gold == label, called == label, zero_division=0), abs=1e-12
                )


def test_counts_of_groups() -> None:
    found = confusion([0, 1, 1, 0], [0, 0, 1, 1], 2, groups=[1, 1, 0, 2], group_count=3)
    assert found.tolist() == [[[0, 0], [0, 1]], [[1, 0], [1, 0]], [[0, 1], [0, 0]]]
    assert confusion([0, 1, 1, 0], [0, 0, 1, 1], 2).tolist() == found.sum(axis=0).tolist()
