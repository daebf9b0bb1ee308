"""Do the intervals of a study hold the truth, are its p-values right, is its power as planned?

    python benchmarks/ab_statistics.py [--studies 10000] [--bootstraps 1000] [--json OUT.json]
    python benchmarks/ab_statistics.py --design 6,40,6 --only coverage

Simulated studies with known win rates. For every design and clustering:
- Wilson: the interval that takes votes as independent;
- bootstrap: plain percentiles of draws of raters and items;
- clustered, our bootstrap: the two intervals of the report;
- false alarms: how often the clustered p-value is below 0.05 without a difference;
and for the planner: the power it promises and the power that other simulated studies have.
Coverage is in per cent; 95 is right, 93 to 97 is what we accept.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from rewriting.ab.study.plan import Assumptions, confirmed, fewest_items, simulated_power
from rewriting.ab.study.simulation import simulated_votes
from rewriting.statistics.intervals import drawn_counts, percentile_interval
from rewriting.statistics.shares import score_interval
from rewriting.statistics.two_way import Clustered, clustered, two_way_bootstrap

DESIGNS = ((6, 40, 6), (6, 40, 3), (12, 50, 3), (30, 60, 3))
CLUSTERING = ((0.0, 0.0), (0.05, 0.0), (0.0, 0.1), (0.05, 0.1), (0.15, 0.2))
RATES = ((0.5, 0.2), (0.65, 0.2), (0.8, 0.0))
BATCH = 2000


def only(sure: Clustered, study: int) -> Clustered:
    one = slice(study, study + 1)
    return Clustered(*(getattr(sure, name)[one] for name in Clustered.__slots__))


def plain_bootstrap(votes: np.ndarray, given: np.ndarray, seed: int) -> Sequence[float]:
    """What one would write first: percentiles of the win rate over drawn raters and items."""
    generator = np.random.default_rng(seed)
    raters, items = (drawn_counts(size, 300, generator).astype(float) for size in votes.shape)
    wins = np.einsum("br,ri,bi->b", raters, votes * given, items, optimize=True)
    counts = np.einsum("br,ri,bi->b", raters, given, items, optimize=True)
    return percentile_interval(wins[counts > 0] / counts[counts > 0])


def coverage(
    design: tuple[int, ...],
    clustering: tuple[float, float],
    rate: float,
    tie_rate: float,
    studies: int,
    bootstraps: int,
) -> dict[str, Any]:
    """Shares of studies, in per cent, whose intervals hold the rate."""
    generator = np.random.default_rng(0)
    held: dict[str, list[bool]] = {"wilson": [], "clustered": [], "bootstrap": [], "plain": []}
    alarms: list[bool] = []
    for _ in range(0, studies, BATCH):
        votes, given, _ = simulated_votes(
            generator,
            studies=BATCH,
            raters=design[0],
            items=design[1],
            votes_per_item=design[2],
            win_rate=rate,
            tie_rate=tie_rate,
            rater_correlation=clustering[0],
            item_correlation=clustering[1],
        )
        sure = clustered(votes, given)
        bounds = {
            "wilson": score_interval(sure.rate, given.sum((1, 2)), 1.959964),
            "clustered": sure.interval(),
        }
        for name, (low, high) in bounds.items():
            held[name] += ((low <= rate) & (rate <= high)).tolist()
        alarms += (sure.p_value(rate) < 0.05).tolist()
        for study in range(BATCH):
            if len(held["bootstrap"]) < bootstraps:
                ours = two_way_bootstrap(
                    votes[study], given[study], only(sure, study), seed=study, resamples=300
                )
                plain = plain_bootstrap(votes[study], given[study], study)
                held["bootstrap"].append(ours[0] <= rate <= ours[1])
                held["plain"].append(plain[0] <= rate <= plain[1])
    found = {name: 100 * float(np.mean(values)) for name, values in held.items()}
    return found | {"false_alarms": 100 * float(np.mean(alarms)) if rate == 0.5 else None}


def planned_power(studies: int) -> list[dict[str, Any]]:
    rows = []
    cases: tuple[tuple[dict[str, Any], int, int], ...] = (
        ({}, 12, 3),
        ({}, 16, 16),
        ({"win_rate": 0.7, "criteria": 1}, 6, 6),
        ({"win_rate": 0.6, "criteria": 1}, 24, 3),
        ({"rater_correlation": 0.0, "item_correlation": 0.0}, 6, 3),
        ({"win_rate": 0.75, "rater_correlation": 0.1, "item_correlation": 0.2}, 12, 3),
        ({"win_rate": 0.7, "power": 0.9, "tie_rate": 0.3}, 12, 3),
    )
    for settings, raters, votes_per_item in cases:
        assumptions = Assumptions(**settings)
        plan = confirmed(assumptions, fewest_items(assumptions, raters, votes_per_item))
        reached = simulated_power(assumptions, plan, studies=studies, seed=1)
        rows.append(
            settings
            | {"raters": raters, "votes_per_item": votes_per_item, "items": plan.items}
            | {"wanted": 100 * assumptions.power, "reached": 100 * reached}
        )
    return rows


def all_coverage(
    designs: Sequence[tuple[int, ...]], studies: int, bootstraps: int
) -> list[dict[str, Any]]:
    print("raters items votes  within raters, items  win rate   Wilson  bootstrap  clustered  ours")
    rows = []
    for design, clustering, (rate, tie_rate) in product(designs, CLUSTERING, RATES):
        found = coverage(design, clustering, rate, tie_rate, studies, bootstraps)
        rows.append({"design": design, "clustering": clustering, "rate": rate, **found})
        alarms = found["false_alarms"]
        print(
            f"{design[0]:6}{design[1]:6}{design[2]:6}{clustering[0]:15.2f}"
            f"{clustering[1]:7.2f}{rate:10.2f}{found['wilson']:9.1f}{found['plain']:11.1f}"
            f"{found['clustered']:11.1f}{found['bootstrap']:6.1f}"
            + (f"   false alarms {alarms:.1f}" if alarms is not None else ""),
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--bootstraps", type=int, default=1000, help="studies that get one")
    parser.add_argument("--design", action="append", help="raters,items,votes per item")
    parser.add_argument("--only", choices=("coverage", "power"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    designs = [tuple(map(int, text.split(","))) for text in options.design or ()]
    rows: list[dict[str, Any]] = []
    if options.only != "power":
        rows = all_coverage(designs or DESIGNS, options.studies, options.bootstraps)
    power = planned_power(options.studies) if options.only != "coverage" else []
    for row in power:
        print(row)
    if options.json:
        text = json.dumps({"coverage": rows, "power": power}, indent=2)
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
