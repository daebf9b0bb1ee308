"""Every system against a chosen one, on the same exchanges: how much better, and is it luck?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from recipes.outcomes import Outcome
from rewriting.errors import UserError
from rewriting.statistics.multiple import holm
from rewriting.statistics.paired import paired_difference

TESTED = (
    "empathy_change",
    "perplexity",
    "coherence",
    "specificity",
    "specificity_new",
    "judge",  # where one was named
)
"""What is measured row by row and can be better or worse. The fewer, the less Holm takes."""
RATIOS = frozenset({"perplexity"})
"""Compared by their logarithm: the difference is a factor."""


def chosen_system(against: str, systems: Sequence[str]) -> str:
    """The system that the others are held against; by default the first one."""
    if against and against not in systems:
        raise UserError(f"--against {against}: the systems are {', '.join(systems)}.")
    return against or next(iter(systems))


def differences(
    outcomes: Mapping[str, Sequence[Outcome]], against: str, *, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """For each other system, per measure, what `paired_difference` says.

    `p_holm` is over the measures. Of perplexity `ratio` stands in place of `difference`.
    """
    theirs = columns_of(outcomes[against])
    seekers = [one.seeker for one in outcomes[against]]
    found: dict[str, dict[str, Any]] = {}
    for system, rows in outcomes.items():
        if system == against:
            continue
        tests = {
            name: paired_difference(ours, theirs[name], seekers, seed=seed)
            for name, ours in columns_of(rows).items()
        }
        adjusted = holm({name: test.p for name, test in tests.items()})
        found[system] = {
            name: {
                "ratio" if name in RATIOS else "difference": _out(name, test.mean),
                "interval": test.interval and [_out(name, bound) for bound in test.interval],
                "p": test.p,
                "p_holm": adjusted[name],
                "n": test.n,
            }
            for name, test in tests.items()
        }
    return found


def columns_of(outcomes: Sequence[Outcome]) -> dict[str, list[float | None]]:
    """The tested measures, and reward terms that were asked for, row by row."""
    rows = [one.row() for one in outcomes]
    names = [name for name in rows[0] if name in TESTED or name.startswith("rewards/")]
    ordered = sorted(names, key=lambda name: TESTED.index(name) if name in TESTED else len(TESTED))
    return {name: [_in(name, row[name]) for row in rows] for name in ordered}


def _in(name: str, value: float | None) -> float | None:
    return math.log(value) if name in RATIOS and value is not None else value


def _out(name: str, value: float | None) -> float | None:
    return math.exp(value) if name in RATIOS and value is not None else value
