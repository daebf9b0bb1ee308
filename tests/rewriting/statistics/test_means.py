"""Means of what is known."""

from rewriting.statistics.means import mean


def test_means_leave_out_what_is_not_known() -> None:
    assert mean([1.0, None, 2.0]) == 1.5
    assert mean([None]) is None
