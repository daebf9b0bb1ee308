"""Paired tests against patterns that can be counted by hand, and under no difference at all."""

import numpy as np
import pytest

from rewriting.statistics.paired import paired_difference, sign_flip_p


def test_all_sign_patterns_are_counted_for_few_groups() -> None:
    # Of 2^5 patterns only all plus and all minus are as far from 0.
    assert sign_flip_p([1.0] * 5, range(5)) == 2 / 32
    # 3, 1, 1: sums ±5, ±3 twice and ±1; at least 3 from 0 are six of eight patterns.
    assert sign_flip_p([3.0, 1.0, -1.0], "abc") == 6 / 8
    assert sign_flip_p([0.0, 0.0], "ab") == 1.0
    assert sign_flip_p([], "") is None


def test_rows_of_one_seeker_are_one_observation() -> None:
    assert sign_flip_p([1.0] * 6, "aabbcc") == 2 / 8
    assert sign_flip_p([1.0] * 40, "a" * 40) == 1.0


def test_a_row_counts_where_both_have_a_value() -> None:
    found = paired_difference([3.0, None, 2.0, 5.0], [1.0, 1.0, 2.0, None], "abcd")
    assert (found.mean, found.n) == (1.0, 2)
    assert found.p == 1.0  # 2 and 0: every pattern is as far from 0
    assert found.interval is not None
    assert paired_difference([None], [1.0], "a").p is None


def test_many_groups_are_sampled_and_a_clear_difference_is_found() -> None:
    ours = [1.0 + 0.1 * (i % 3) for i in range(60)]
    assert paired_difference(ours, [0.0] * 60, range(60)).p == pytest.approx(1 / 9991)


def test_under_no_difference_p_is_below_a_level_as_often_as_the_level_says() -> None:
    generator = np.random.default_rng(0)
    found = [sign_flip_p(generator.normal(size=11).tolist(), range(11)) for _ in range(600)]
    below = [np.mean([p is not None and p <= level for p in found]) for level in (0.05, 0.2, 0.5)]
    assert below == pytest.approx([0.05, 0.2, 0.5], abs=0.04)
