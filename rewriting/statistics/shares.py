"""Shares of trials: how sure they are, and whether they differ from one half."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rewriting.statistics.intervals import Interval

NORMAL_95 = 1.959963984540054


def score_interval(share: Any, trials: Any, quantile: Any) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval (1927), for any number of trials, whole or not, and any quantile.

    Arrays of one shape, or numbers. statsmodels has the formula for a normal quantile only; few
    raters need Student's t (two_way.py).
    """
    extra = np.square(quantile) / trials
    middle = (share + extra / 2) / (1 + extra)
    half = np.sqrt(extra * share * (1 - share) + np.square(extra) / 4) / (1 + extra)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def wilson(successes: float, trials: float) -> Interval | None:
    """Wilson's 95 % interval of a share of independent trials; None without trials."""
    if not trials:
        return None
    low, high = score_interval(successes / trials, float(trials), NORMAL_95)
    return float(low), float(high)


def binomial_p(successes: float, trials: int) -> float | None:
    """Exact two-sided binomial test against one half, for independent trials; None without any.

    Half a success (an odd number of split ties) is rounded towards no difference.
    """
    from scipy.stats import binomtest

    if not trials:
        return None
    whole = math.floor(successes) if successes > trials / 2 else math.ceil(successes)
    return float(binomtest(whole, trials).pvalue)
