"""Means of what is known."""

import pytest

from rewriting.statistics.means import geometric_mean, mean


def test_means_leave_out_what_is_not_known() -> None:
    assert mean([1.0, None, 2.0]) == 1.5
    assert mean([None]) is None


def test_perplexities_are_averaged_as_logarithms() -> None:
    assert geometric_mean([10, 1000]) == pytest.approx(100)
