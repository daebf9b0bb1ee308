"""Every system against a chosen one, on the same exchanges: how much better, and is it luck?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewriting.errors import UserError
from rewriting.measures.measure import Measure
from rewriting.measures.rewrites import Outcome, compared_measures
from rewriting.statistics.multiple import holm
from rewriting.statistics.paired import Difference, paired_difference


def chosen_system(against: str, systems: Sequence[str]) -> str:
    """The system that the others are held against; by default the first one."""
    if against and against not in systems:
        raise UserError(
            f"--against {against} is none of the systems; the systems are {', '.join(systems)}."
        )
    return against or next(iter(systems))


def differences(
    outcomes: Mapping[str, Sequence[Outcome]], against: str, *, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """For each other system, per measure, what `paired_difference` says.

    `p_holm` is over the measures. Of perplexity `ratio` stands in place of `difference`.
    """
    base = outcomes[against]
    measures = compared_measures(base)
    seekers = [one.seeker for one in base]
    theirs = {name: measure.column(base) for name, measure in measures.items()}
    found: dict[str, dict[str, Any]] = {}
    for system, rows in outcomes.items():
        if system == against:
            continue
        tests = {
            name: paired_difference(measure.column(rows), theirs[name], seekers, seed=seed)
            for name, measure in measures.items()
        }
        adjusted = holm({name: test.p for name, test in tests.items()})
        found[system] = {
            name: paired_figures(measures[name], test) | {"p_holm": adjusted[name], "n": test.n}
            for name, test in tests.items()
        }
    return found


def paired_figures(measure: Measure[Outcome], test: Difference) -> dict[str, Any]:
    """A test as JSON has it, on the scale of the table."""
    return {
        "ratio" if measure.ratio else "difference": measure.back(test.mean),
        "interval": test.interval and [measure.back(bound) for bound in test.interval],
        "p": test.p,
    }
