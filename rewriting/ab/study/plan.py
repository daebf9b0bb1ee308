"""How many items and raters does a study need?

By formula first, for every number of raters; then a simulation of that study says what power it
really has. The test is the one of the report: the clustered one, ties left out, Holm over criteria.
Holm's first step asks for 5 % divided by the number of criteria, so a plan that reaches its power
there reaches it for every criterion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import nct
from scipy.stats import t as student

from rewriting.ab.study.simulation import latent_correlations, simulated_votes
from rewriting.statistics.two_way import clustered

MOST_ITEMS = 5000
CELLS_AT_ONCE = 1_000_000  # of rater × item; bounds the memory of a simulation
RATERS = (3, 4, 6, 8, 12, 16, 24)


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a plan rests on.

    win_rate: the smallest win rate, among decided votes, that the study should find.
    rater_correlation, item_correlation: how alike two votes of one rater, and two on one item, are:
        0 is independent, 1 always the same.
    """

    win_rate: float = 0.65
    power: float = 0.8
    criteria: int = 3
    tie_rate: float = 0.15
    rater_correlation: float = 0.03
    item_correlation: float = 0.1
    alpha: float = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """A study that is large enough, or, with items None, one that never is."""

    raters: int
    votes_per_item: int
    items: int | None
    power: float

    @property
    def votes_per_rater(self) -> float | None:
        return None if self.items is None else self.items * self.votes_per_item / self.raters


def plans(
    assumptions: Assumptions,
    *,
    raters: Sequence[int] = RATERS,
    votes_per_item: int | None = None,
) -> list[Plan]:
    """The fewest items for each number of raters. votes_per_item: everybody's, where None."""
    latent_correlations(  # refuses what no votes can have, also where nothing is simulated
        assumptions.win_rate, assumptions.rater_correlation, assumptions.item_correlation
    )
    return [fewest_items(assumptions, count, votes_per_item or count) for count in raters]


def fewest_items(assumptions: Assumptions, raters: int, votes_per_item: int) -> Plan:
    """Power grows with the items, up to a limit that the raters' own differences set."""
    votes_per_item = min(votes_per_item, raters)
    most = power_of(assumptions, raters, votes_per_item, MOST_ITEMS)
    if most < assumptions.power:
        return Plan(raters, votes_per_item, None, most)
    low, high = 2, MOST_ITEMS
    while low < high:
        middle = (low + high) // 2
        enough = power_of(assumptions, raters, votes_per_item, middle) >= assumptions.power
        low, high = (low, middle) if enough else (middle + 1, high)
    return Plan(raters, votes_per_item, low, power_of(assumptions, raters, votes_per_item, low))


def power_of(assumptions: Assumptions, raters: int, votes_per_item: int, items: int) -> float:
    """The chance to find the win rate, by the noncentral t distribution.

    Variances as clustering.py estimates them, at their expectations: raters, items and single
    votes as mean squares, their degrees of freedom joined by Satterthwaite's rule.
    """
    rate, decided = assumptions.win_rate, 1 - assumptions.tie_rate
    votes = items * votes_per_item * decided
    of_rater, of_item = assumptions.rater_correlation, assumptions.item_correlation
    per_rater = votes / raters
    per_item = votes_per_item * decided + assumptions.tie_rate  # mean square over mean
    single = 1 - of_rater - of_item
    parts = np.array([single + per_rater * of_rater, single + per_item * of_item, -single]) / votes
    if votes_per_item == 1:  # items and single votes are one component
        parts = np.array([1 - of_rater + per_rater * of_rater, 0, 0]) / votes
    freedom = np.array([raters - 1, items - 1, max(votes - raters - items + 1, 1)])
    variance = parts.sum()
    joined = max(variance**2 / (np.square(parts) / freedom).sum(), min(raters, items) - 1)
    error = np.sqrt(variance * rate * (1 - rate))
    critical = student.ppf(1 - assumptions.alpha / assumptions.criteria / 2, joined)
    critical *= 0.5 / np.sqrt(rate * (1 - rate))  # the test's error is the one at one half
    return float(nct.sf(critical, joined, abs(rate - 0.5) / error))


def confirmed(assumptions: Assumptions, plan: Plan, *, seed: int = 0) -> Plan:
    """The plan with the power that simulated studies have; items are added until it suffices.

    The formula takes variances as normal ones and is up to five points too hopeful.
    """
    if plan.items is None:
        return plan
    plan = replace(plan, power=simulated_power(assumptions, plan, seed=seed))
    while plan.power < assumptions.power:
        more = replace(plan, items=math.ceil(plan.items * 1.06) if plan.items else None)
        if more.items is None or more.items > MOST_ITEMS:
            return replace(plan, items=None)
        plan = replace(more, power=simulated_power(assumptions, more, seed=seed))
    return plan


def simulated_power(
    assumptions: Assumptions, plan: Plan, *, studies: int = 2000, seed: int = 0
) -> float:
    """The share of simulated studies of this plan whose clustered p-value is small enough."""
    if plan.items is None:
        raise ValueError("a plan without items cannot be simulated")
    generator = np.random.default_rng(seed)
    at_once = max(1, CELLS_AT_ONCE // (plan.raters * plan.items))
    found = 0
    for start in range(0, studies, at_once):
        votes, decided, _ = simulated_votes(
            generator,
            studies=min(at_once, studies - start),
            raters=plan.raters,
            items=plan.items,
            votes_per_item=plan.votes_per_item,
            win_rate=assumptions.win_rate,
            tie_rate=assumptions.tie_rate,
            rater_correlation=assumptions.rater_correlation,
            item_correlation=assumptions.item_correlation,
        )
        limit = assumptions.alpha / assumptions.criteria
        with np.errstate(invalid="ignore", divide="ignore"):  # nothing but ties finds nothing
            found += int((clustered(votes, decided).p_value() <= limit).sum())
    return found / studies


def plan_json(assumptions: Assumptions, found: Sequence[Plan]) -> dict[str, Any]:
    rows = [asdict(plan) | {"votes_per_rater": plan.votes_per_rater} for plan in found]
    return {"assumptions": asdict(assumptions), "plans": rows}
