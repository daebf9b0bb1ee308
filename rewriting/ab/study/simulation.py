"""Studies that did not happen: votes with a known win rate, tie rate and clustering.

For the planner, which asks how often a study of some size would find a difference, and for the
tests and the benchmark of the statistics. Legend as in clustering.py: S studies, R raters, I items.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm

from rewriting.errors import UserError


def simulated_votes(
    generator: np.random.Generator,
    *,
    studies: int,
    raters: int,
    items: int,
    votes_per_item: int,
    win_rate: float,
    tie_rate: float = 0.0,
    rater_correlation: float = 0.0,
    item_correlation: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """votes_sri (1 win, 0 loss), decided_sri (1 where the vote is not a tie), given_ri.

    A rater and an item each add a normal amount to a vote's leaning, and the vote is its sign; so
    the win rate is exact, and two votes of one rater (or on one item) are correlated as asked.
    win_rate is that of decided votes; ties come at random.
    """
    threshold = norm.ppf(win_rate)
    of_rater, of_item = latent_correlations(win_rate, rater_correlation, item_correlation)
    leaning = (
        threshold
        + np.sqrt(of_rater) * generator.normal(size=(studies, raters, 1))
        + np.sqrt(of_item) * generator.normal(size=(studies, 1, items))
        + np.sqrt(1 - of_rater - of_item) * generator.normal(size=(studies, raters, items))
    )
    given_ri = rota(raters, items, votes_per_item)
    decided_sri = given_ri * (generator.random(leaning.shape) >= tie_rate)
    return (leaning > 0).astype(float), decided_sri, given_ri


def rota(raters: int, items: int, votes_per_item: int) -> np.ndarray:
    """Raters taking turns: 1 where a rater judges an item; loads differ by one at most."""
    given_ri = np.zeros((raters, items))
    turns = np.arange(items * votes_per_item)
    given_ri[turns % raters, turns // votes_per_item] = 1
    return given_ri


def latent_correlations(
    win_rate: float, rater_correlation: float, item_correlation: float
) -> tuple[float, float]:
    """Those of the leanings of a rater and on an item. What is left falls to single votes."""
    of_rater = latent_correlation(win_rate, rater_correlation)
    of_item = latent_correlation(win_rate, item_correlation)
    if of_rater + of_item >= 1:
        raise UserError(
            "votes cannot be correlated so highly within raters and within pairs at once: "
            "lower one."
        )
    return of_rater, of_item


def latent_correlation(win_rate: float, correlation: float) -> float:
    """The correlation of normal leanings whose signs are correlated by so much."""
    if not correlation:
        return 0.0
    threshold = norm.ppf(win_rate)

    def of_votes(latent: float) -> float:
        both = multivariate_normal([0, 0], [[1, latent], [latent, 1]]).cdf([threshold, threshold])
        return float((both - win_rate**2) / (win_rate * (1 - win_rate)))

    return float(brentq(lambda latent: of_votes(latent) - correlation, 1e-9, 1 - 1e-6))
