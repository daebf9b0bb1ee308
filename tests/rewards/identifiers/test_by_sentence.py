"""The called levels of single sentences, and the bars that are chosen for them, by hand."""

import numpy as np

from rewards.identifiers.by_sentence import Shown, best_bars, levels
from rewriting.exchange import MECHANISMS, Exchange, Label


def test_levels_of_sentences() -> None:
    some_T, strong_T = np.array([0.4, 0.6, 0.6, 0.5]), np.array([0.9, 0.2, 0.9, 0.9])
    assert levels(some_T, strong_T, 0.5, 0.5).tolist() == [0, 1, 2, 0]  # at the bar is not above it
    assert levels(some_T, strong_T, 0.3, 0.95).tolist() == [1, 1, 1, 1]
    assert levels(np.array([]), np.array([]), 0.5, 0.5).tolist() == []


def test_the_bars_are_those_that_call_the_right_levels() -> None:
    def shown(some: float, strong: float) -> Shown:
        return ("Oh.",), np.full((1, 3, 2), (some, strong)), True

    def exchange(level: int) -> Exchange:
        return Exchange("A", "Oh.", labels=dict.fromkeys(MECHANISMS, Label(level, ())))

    rows = [(0.32, 0.9, 0), (0.42, 0.35, 1), (0.9, 0.45, 2)]
    some, strong = best_bars(
        [shown(some, strong) for some, strong, _ in rows], [exchange(level) for *_, level in rows]
    )
    assert all(0.32 <= bar < 0.42 for bar in some)
    assert all(0.35 <= bar < 0.45 for bar in strong)
