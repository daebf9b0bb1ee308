"""The statistics of one comparison: its votes as a table, win rates, agreement, strengths.

analysis.py says which votes go in, rewriting/statistics has the tests. The votes of a rater and
those on an item resemble each other: what that does to a win rate is in statistics/two_way.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewriting.errors import UserError
from rewriting.statistics.agreement import alpha_interval
from rewriting.statistics.shares import binomial_p, wilson
from rewriting.statistics.two_way import (
    can_be_split,
    clustered,
    judged_once,
    moments,
    two_way_bootstrap,
)


@dataclass(frozen=True, slots=True)
class Table:
    """The votes of one comparison on one criterion, raters in rows and items in columns.

    outcome: 1 where the first system won, 0 where the second did, 0.5 for a tie, NaN for no vote.
    """

    raters: tuple[int, ...]
    items: tuple[str, ...]
    outcome: np.ndarray

    @property
    def wins(self) -> int:
        return int((self.outcome == 1).sum())

    @property
    def losses(self) -> int:
        return int((self.outcome == 0).sum())

    @property
    def ties(self) -> int:
        return int((self.outcome == 0.5).sum())


def table_of(votes: Sequence[tuple[int, str, float]]) -> Table:
    """A table from (rater, item, outcome)."""
    raters = tuple(sorted({rater for rater, _, _ in votes}))
    items = tuple(sorted({item for _, item, _ in votes}))
    row_of = {rater: place for place, rater in enumerate(raters)}
    column_of = {item: place for place, item in enumerate(items)}
    outcome = np.full((len(raters), len(items)), np.nan)
    for rater, item, value in votes:
        outcome[row_of[rater], column_of[item]] = value
    return Table(raters, items, outcome)


def rate_figures(table: Table, *, ties: str, seed: int) -> dict[str, Any]:
    """The win rate of the first system, with tests and intervals. ties: left_out or split."""
    outcome = table.outcome
    given = ~np.isnan(outcome) if ties == "split" else (outcome == 0) | (outcome == 1)
    trials = int(given.sum())
    successes = float(outcome[given].sum())
    figures: dict[str, Any] = {
        "votes": trials,
        "win_rate": successes / trials if trials else None,
        "wilson": wilson(successes, trials),
        "binomial_p": binomial_p(successes, trials),
        "clustered": None,
        "clustered_p": None,
        "bootstrap": None,
        "standard_error": None,
        "degrees_of_freedom": None,
        "effective_votes": None,
        "rater_correlation": None,
        "item_correlation": None,
    }
    # A rater or item without a decided vote would leave an empty row or column behind.
    given, outcome = (one[given.any(1)][:, given.any(0)] for one in (given, outcome))
    if min(given.shape) < 2 or not can_be_split(moments(given[None].astype(float))[0])[0]:
        return figures
    votes = np.where(given, outcome, 0.0)
    sure = clustered(votes[None], given[None])
    low, high = sure.interval()
    of_rater, of_item, _ = np.maximum(sure.components[0], 0) / max(sure.components[0].sum(), 1e-12)
    return figures | {
        "clustered": (float(low[0]), float(high[0])),
        "clustered_p": float(sure.p_value()[0]),
        "bootstrap": two_way_bootstrap(votes, given, sure, seed=seed),
        "standard_error": float(np.sqrt(sure.variance[0])),
        "degrees_of_freedom": float(sure.degrees_of_freedom[0]),
        "effective_votes": float(sure.effective_votes[0]),
        "rater_correlation": float(min(of_rater, 1)),
        "item_correlation": None if judged_once(given[None])[0] else float(min(of_item, 1)),
    }


def alpha(table: Table, *, seed: int, resamples: int = 2000) -> dict[str, Any]:
    """Krippendorff's alpha (nominal: first, tie, second) and its 95 % interval.

    The value is evalica's, the interval draws items (statistics/agreement.py). Both are None where
    no item has two votes, or all votes say the same: then there is nothing to agree on.
    """
    counts = np.stack([(table.outcome == value).sum(0) for value in (1, 0.5, 0)], axis=1)
    counts = counts[counts.sum(1) > 1].astype(float)
    nothing = {"alpha": None, "interval": None, "items": len(counts)}
    if not len(counts) or (counts.sum(0) > 0).sum() < 2:
        return nothing
    evalica, pandas = ab_library("evalica"), ab_library("pandas")
    value = evalica.alpha(pandas.DataFrame(table.outcome), "nominal").alpha
    interval = alpha_interval(counts, seed=seed, resamples=resamples)
    return {"alpha": float(value), "interval": interval, "items": len(counts)}


def bradley_terry(
    votes: Sequence[tuple[int, str, str, str, float]],
    systems: Sequence[str],
    *,
    seed: int,
    resamples: int = 200,
) -> dict[str, dict[str, Any]]:
    """System → strength, as log odds against the average system, with a 95 % interval.

    votes: rater, exchange, first system, second system, outcome as in `Table`. A tie is half a win
    for each. The interval draws raters and exchanges at once and so errs on the wide side
    (two_way.py); `beats_average` is the strength as a probability.
    """
    evalica, pandas = ab_library("evalica"), ab_library("pandas")
    index = pandas.Index(list(systems))
    winner = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw}
    kinds = sorted({vote[2:] for vote in votes})  # votes that say the same are one, with a weight
    kind_of = np.array([kinds.index(vote[2:]) for vote in votes])
    first, second = [kind[0] for kind in kinds], [kind[1] for kind in kinds]
    winners = [winner[kind[2]] for kind in kinds]

    def strengths(weights: np.ndarray) -> np.ndarray:
        counts = np.bincount(kind_of, weights, minlength=len(kinds)).tolist()
        found = evalica.bradley_terry(
            first, second, winners, index=index, weights=counts, limit=10_000
        )
        logs = np.log(np.maximum(found.scores[list(systems)].to_numpy(), 1e-12))
        return logs - logs.mean()

    generator = np.random.default_rng(seed)
    places = [_places([vote[side] for vote in votes]) for side in (0, 1)]
    drawn = []
    for _ in range(resamples):
        weights = np.ones(len(votes))
        for place in places:
            size = place.max() + 1
            weights *= generator.multinomial(size, np.full(size, 1 / size))[place]
        if weights.any():
            drawn.append(strengths(weights))
    value = strengths(np.ones(len(votes)))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return {
        system: {
            "strength": float(value[n]),
            "interval": (float(low[n]), float(high[n])),
            "beats_average": float(1 / (1 + np.exp(-value[n]))),
        }
        for n, system in enumerate(systems)
    }


def _places(values: Sequence[Any]) -> np.ndarray:
    return np.unique(np.array([str(value) for value in values]), return_inverse=True)[1]


def ab_library(name: str) -> Any:
    """A library of the extra `ab`, or one line that says how to get it."""
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise UserError(
            f"studies need {name}: pip install 'empathic-rewriting[ab]' brings it."
        ) from error
