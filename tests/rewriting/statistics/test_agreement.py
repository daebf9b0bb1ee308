"""Krippendorff's alpha against his own example."""

import math

import numpy as np
import pytest

from rewriting.statistics.agreement import alpha_interval, nominal_alpha

NAN = math.nan


def test_alpha_is_krippendorffs() -> None:
    """Four observers, twelve units: Krippendorff, Computing alpha-reliability (2011), part C."""
    codes = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
            [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
        ]
    )
    counts = np.stack([(codes == value).sum(0) for value in range(1, 6)], axis=1)
    counts = counts[counts.sum(1) > 1].astype(float)
    assert nominal_alpha(counts, np.ones((1, len(counts))))[0] == pytest.approx(0.743, abs=5e-4)


def test_an_interval_holds_the_value_and_follows_the_seed() -> None:
    counts = np.array([[3, 0], [0, 3], [2, 1], [1, 2], [3, 0], [0, 3]], float)
    low, high = alpha_interval(counts, seed=0)
    assert low < nominal_alpha(counts, np.ones((1, 6)))[0] < high <= 1
    assert alpha_interval(counts, seed=0) == (low, high)
