"""Bootstraps that draw whole groups and cover what they should."""

import numpy as np
import pytest

from rewriting.statistics.intervals import bootstrap_interval, drawn_counts, grouped_interval


def test_whole_groups_are_drawn() -> None:
    values: list[float | None] = [0.0] * 50 + [1.0] * 50
    rows = bootstrap_interval(values, range(100))
    assert rows is not None
    assert 0.35 < rows[0] < rows[1] < 0.65
    # Two seekers with fifty replies each say as little as two numbers do.
    assert bootstrap_interval(values, [0] * 50 + [1] * 50) == (0.0, 1.0)
    assert bootstrap_interval(values, [0] * 100) is None
    assert bootstrap_interval([None, 1.0, None], [0, 1, 2]) is None


def test_the_same_seed_gives_the_same_interval() -> None:
    values = [float(value) for value in np.random.default_rng(1).normal(size=30)]
    assert bootstrap_interval(values, range(30)) == bootstrap_interval(values, range(30))
    assert bootstrap_interval(values, range(30)) != bootstrap_interval(values, range(30), seed=1)


@pytest.mark.parametrize("groups", [8, 40])
def test_intervals_cover_the_truth(groups: int) -> None:
    """Replies of a seeker share an effect of their own: rows drawn one by one would miss it."""
    generator = np.random.default_rng(groups)
    covered = 0
    for number in range(600):
        effects = np.repeat(generator.normal(size=groups), 3)
        values = effects + generator.normal(scale=0.5, size=3 * groups)
        of = [place // 3 for place in range(3 * groups)]
        low, high = bootstrap_interval(list(values), of, seed=number, resamples=500) or (1, 1)
        covered += low <= 0 <= high
    assert 0.93 <= covered / 600 <= 0.97


def test_an_interval_draws_whole_groups() -> None:
    values = np.array([0.0, 0.0, 1.0])
    found = grouped_interval(lambda rows: float(values[rows].mean()), ["a", "a", "b"])
    assert found == (0.0, 1.0)
    assert grouped_interval(lambda rows: 0.0, ["a", "a"]) is None
    assert grouped_interval(lambda rows: float("nan"), ["a", "b"]) is None


def test_as_many_groups_are_drawn_as_there_are() -> None:
    counts = drawn_counts(7, 40, np.random.default_rng(0))
    assert counts.shape == (40, 7)
    assert (counts.sum(axis=1) == 7).all()
