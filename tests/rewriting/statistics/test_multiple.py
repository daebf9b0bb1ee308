"""Holm's correction by hand and against its definition."""

import numpy as np
import pytest

from rewriting.statistics.multiple import holm


def test_holm_by_hand() -> None:
    adjusted = holm({"a": 0.04, "b": 0.01, "c": None, "d": 0.03})
    # 3 · 0.01, then 2 · 0.03, then 0.04, but never below the one before.
    assert adjusted == pytest.approx({"a": 0.06, "b": 0.03, "c": None, "d": 0.06})
    assert list(adjusted) == list("abcd")
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}


def test_nothing_tested_is_nothing_adjusted() -> None:
    assert holm({}) == {}
    assert holm({"a": None}) == {"a": None}


def step_down(p_values: list[float]) -> list[float]:
    """Holm (1979) as he writes it: the smallest times their number, the next times one less, …"""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_holm_is_the_step_down_procedure_to_the_bit(count: int) -> None:
    generator = np.random.default_rng(count)
    for p_values in generator.random((20, count)).round(2).tolist():  # rounded, so some are equal
        found = holm(dict(enumerate(p_values)))
        assert list(found.values()) == step_down(p_values)
