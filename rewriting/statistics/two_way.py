"""How sure is a win rate when the votes of a rater, and those on an item, resemble each other?

A study has few raters, and the raters are a sample too: forty votes of one person are not forty
people. Taking votes as independent makes intervals too narrow, and so do plain bootstraps over six
raters. Here the variance of the win rate is split into a part of raters, of items and of single
votes by moments that are exact for any assignment, crossed or in blocks; Student's t, with
Satterthwaite's degrees of freedom, accounts for how badly few raters tell their own variance; and
the interval has the form of a score (Wilson) interval with the effective number of votes, as for
surveys (Franco et al. 2019, PMC6690503). docs/ab-tests.md has the coverage measured.

Pure functions. Legend: S studies (simulated at once, or one), R raters, I items.
votes_sri: 1 for a win, 0 for a loss, 0.5 for a split tie; given_sri: 1 where there is a vote.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from rewriting.statistics.intervals import drawn_counts
from rewriting.statistics.shares import score_interval

Array = np.ndarray

SMALLEST_DESIGN_EFFECT = 0.25
"""Below this share of the variance of independent votes an estimate is chance, not knowledge.

Not 1: votes that vary less than independent ones by chance balance those that vary more. Cutting
them off at 0.9 left p-values of independent votes far from uniform (docs/ab-tests.md)."""


@dataclass(frozen=True, slots=True)
class Clustered:
    """A win rate and how sure it is, for each study. Arrays of S numbers."""

    rate: Array
    variance: Array
    degrees_of_freedom: Array
    effective_votes: Array
    components: Array  # S × 3: variance of raters, of items, of single votes

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """The rates that a two-sided test at 1 − level does not reject."""
        quantile = student.ppf((1 + level) / 2, self.degrees_of_freedom)
        return score_interval(self.rate, self.effective_votes, quantile)

    def p_value(self, rate: float = 0.5) -> Array:
        """Two-sided, against this win rate. Below 0.05 exactly where the interval leaves it out."""
        error = np.sqrt(rate * (1 - rate) / self.effective_votes)
        return 2 * student.sf(np.abs(self.rate - rate) / error, self.degrees_of_freedom)


def clustered(votes_sri: Array, given_sri: Array) -> Clustered:
    """Win rates with their two-way clustered variance.

    Needs two raters and two items a study, and raters with several votes; degrees of freedom, and
    so intervals and p-values, are NaN without (`can_be_split`).

    Sums of squares over raters, items and votes are quadratic forms of the residuals, and their
    expectations are linear in the three components of variance: solving those three equations
    gives unbiased components, whatever the assignment (Henderson's method in its simplest form).
    Where all votes agree nothing can be estimated, and votes count as independent. Where no item
    has two votes, items and single votes are one component.
    """
    given_sri = np.broadcast_to(given_sri, votes_sri.shape).astype(float)
    count_s = given_sri.sum((1, 2))
    rate_s = (votes_sri * given_sri).sum((1, 2)) / count_s
    residual_sri = (votes_sri - rate_s[:, None, None]) * given_sri
    squares_sk = np.stack(
        [
            np.square(residual_sri.sum(2)).sum(1),
            np.square(residual_sri.sum(1)).sum(1),
            np.square(residual_sri).sum((1, 2)),
        ],
        axis=1,
    )
    expectation_skk, share_sk = moments(given_sri)
    alone_s = judged_once(given_sri)
    squares_sk[alone_s, 1] = 0
    split_s = can_be_split(expectation_skk)
    expectation_skk[~split_s] = np.eye(3)
    components_sk = np.linalg.solve(expectation_skk, squares_sk[..., None])[..., 0]
    parts_sk = np.linalg.solve(expectation_skk, share_sk[..., None])[..., 0] * squares_sk
    raters_s = (given_sri.sum(2) > 0).sum(1)
    items_s = (given_sri.sum(1) > 0).sum(1)
    rest_s = np.maximum(count_s - raters_s - np.where(alone_s, 0, items_s - 1), 1)
    freedom_sk = np.maximum(np.stack([raters_s - 1, items_s - 1, rest_s], axis=1), 1)
    independent_s = rate_s * (1 - rate_s) / count_s
    unanimous_s = independent_s == 0
    variance_s = np.maximum(parts_sk.sum(1), SMALLEST_DESIGN_EFFECT * independent_s)
    fewest_s = np.minimum(raters_s, items_s) - 1.0
    spread_s = (np.square(parts_sk) / freedom_sk).sum(1)
    freedom_s = np.maximum(
        np.divide(np.square(parts_sk.sum(1)), spread_s, out=fewest_s.copy(), where=spread_s > 0),
        fewest_s,
    )
    freedom_s[~split_s | (fewest_s < 1)] = np.nan
    effective_s = np.divide(
        independent_s * count_s, variance_s, out=count_s.copy(), where=~unanimous_s
    )
    return Clustered(rate_s, variance_s, freedom_s, effective_s, components_sk)


def moments(given_sri: Array) -> tuple[Array, Array]:
    """What the sums of squares are expected to be, per unit of each component of variance (S×3×3),
    and what a unit of each adds to the variance of the mean (S×3).

    With M the matrix that subtracts the mean and Z the incidence of raters, items or votes, the
    entry of kinds j and k is the squared norm of Zⱼᵀ M Zₖ. Where no item has two votes, items say
    nothing that single votes do not: they drop out, with a 1 that keeps the equations solvable.
    """
    rater_sr, item_si, count_s = given_sri.sum(2), given_sri.sum(1), given_sri.sum((1, 2))
    together_sri = given_sri - rater_sr[:, :, None] * item_si[:, None, :] / count_s[:, None, None]
    expectation = np.empty((len(count_s), 3, 3))
    for kind, size in enumerate((rater_sr, item_si)):
        left = size - np.square(size) / count_s[:, None]
        crossed = np.square(np.square(size).sum(1)) - np.power(size, 4).sum(1)
        expectation[:, kind, kind] = np.square(left).sum(1) + crossed / np.square(count_s)
        expectation[:, kind, 2] = expectation[:, 2, kind] = left.sum(1)
    expectation[:, 0, 1] = expectation[:, 1, 0] = np.square(together_sri).sum((1, 2))
    expectation[:, 2, 2] = count_s - 1
    share = np.stack([np.square(rater_sr).sum(1), np.square(item_si).sum(1), count_s], axis=1)
    alone_s = judged_once(given_sri)
    expectation[alone_s, 1, :] = expectation[alone_s, :, 1] = share[alone_s, 1] = 0
    expectation[alone_s, 1, 1] = 1
    return expectation, share / np.square(count_s)[:, None]


def judged_once(given_sri: Array) -> Array:
    """Studies in which no item has two votes."""
    return np.asarray(given_sri.sum(1).max(1) <= 1)


def can_be_split(expectation_skk: Array) -> Array:
    """Can raters, items and votes be told apart? Not where every rater has judged one item."""
    sound_s = np.isfinite(expectation_skk).all((1, 2))
    expectation_skk = np.where(sound_s[:, None, None], expectation_skk, np.eye(3))
    return np.asarray(sound_s & (np.linalg.cond(expectation_skk) < 1e10))


def two_way_bootstrap(
    votes_ri: Array,
    given_ri: Array,
    sure: Clustered,
    *,
    seed: int,
    resamples: int = 4000,
    level: float = 0.95,
) -> tuple[float, float]:
    """An interval of one study by drawing raters and items with replacement, both at once.

    Such draws have the wrong width: three times the variance where votes are independent, too
    little where six raters differ much (Owen 2007, The pigeonhole bootstrap). So only their shape
    is used: how many of their standard deviations hold 95 % of them, moved outwards as far as
    Student's t lies outside the normal distribution (Hesterberg 2015, arXiv 1411.5279), takes the
    place of the quantile in the interval of `clustered`.
    """
    generator = np.random.default_rng(seed)
    weights = [drawn_counts(size, resamples, generator).astype(float) for size in votes_ri.shape]
    wins = np.einsum("br,ri,bi->b", weights[0], votes_ri * given_ri, weights[1], optimize=True)
    counts = np.einsum("br,ri,bi->b", weights[0], given_ri, weights[1], optimize=True)
    drawn = wins[counts > 0] / counts[counts > 0]
    spread, normal = drawn.std(), student.ppf((1 + level) / 2, np.inf)
    quantile = np.quantile(np.abs(drawn - drawn.mean()), level) / spread if spread else normal
    widening = student.ppf((1 + level) / 2, sure.degrees_of_freedom) / normal
    low, high = score_interval(sure.rate, sure.effective_votes, quantile * widening)
    return float(low[0]), float(high[0])
