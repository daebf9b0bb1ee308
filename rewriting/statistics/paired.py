"""Is one system better than another on the same exchanges, or was it luck? Pure functions.

Both systems rewrite the same posts, so rows are compared in pairs. Replies to one post are alike,
so what is flipped and drawn are whole groups (seekers), never rows. scipy's permutation test flips
single rows, so this one is ours.

Legend: G groups, F flips.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from rewriting.statistics.intervals import Interval, bootstrap_interval
from rewriting.statistics.means import mean

if TYPE_CHECKING:
    import numpy as np

EXACT_GROUPS: Final = 13  # so many and fewer: all 2^G flips
FLIPS: Final = 9_999


@dataclass(frozen=True, slots=True)
class Difference:
    """Ours minus theirs, over the rows that have both. p: of a two-sided test, None without any."""

    mean: float | None
    interval: Interval | None
    p: float | None
    n: int


def paired_difference(
    ours: Sequence[float | None],
    theirs: Sequence[float | None],
    groups: Sequence[Hashable],
    *,
    seed: int = 0,
) -> Difference:
    """The mean difference, its 95 % interval by bootstrap, and how likely luck makes it as large.

    A row counts where both systems have a value.
    """
    rows = [
        (a - b, group)
        for a, b, group in zip(ours, theirs, groups, strict=True)
        if a is not None and b is not None
    ]
    values, of = [value for value, _ in rows], [group for _, group in rows]
    interval = bootstrap_interval(values, of, seed=seed)
    return Difference(mean(values), interval, sign_flip_p(values, of, seed=seed), len(rows))


def sign_flip_p(
    differences: Sequence[float], groups: Sequence[Hashable], *, seed: int = 0
) -> float | None:
    """Two-sided p of a permutation test; None without rows.

    Were the two systems alike, each group's differences could as well have had the other sign. p is
    the share of sign patterns whose sum is at least as far from 0 as the one seen: of all patterns
    for few groups, else of random ones, the seen one among them (Phipson and Smyth 2010).
    """
    import numpy as np

    if not differences:
        return None
    sums: dict[Hashable, float] = defaultdict(float)
    for value, group in zip(differences, groups, strict=True):
        sums[group] += value
    sums_G = np.array(list(sums.values()))
    seen = abs(sums_G.sum()) * (1 - 1e-9)  # so that rounding does not part what is equal
    if len(sums_G) <= EXACT_GROUPS:
        signs_FG = np.array(list(product((1, -1), repeat=len(sums_G))))
        return float(np.mean(np.abs(signs_FG @ sums_G) >= seen))
    return _random_p(sums_G, seen, np.random.default_rng(seed))


def _random_p(sums_G: np.ndarray, seen: float, generator: np.random.Generator) -> float:
    beyond, block = 1, 333
    for _ in range(FLIPS // block):
        signs_FG = generator.integers(2, size=(block, len(sums_G))) * 2 - 1
        beyond += int((abs(signs_FG @ sums_G) >= seen).sum())
    return beyond / (FLIPS // block * block + 1)
