"""The differences from a chosen system, as tables show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rewriting.measures.rewrites import measure_of

LEVEL: Final = 0.05
Figures = Mapping[str, Mapping[str, Any]]


class Cell(NamedTuple):
    """A difference, its interval and its p as text."""

    value: str
    interval: str
    p: str


def compared(figures: Figures) -> tuple[str, dict[str, Mapping[str, Any]]]:
    """The system the others are held against, and their measures; nothing where none are."""
    found = {name: one["against"] for name, one in figures.items() if one.get("against")}
    against = next((one["system"] for one in found.values()), "")
    return against, {name: one["measures"] for name, one in found.items()}


def difference_table(others: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Cell]]:
    """Measure → for each system its difference, where anybody has one."""
    measures = next(iter(others.values()), {})
    table = {name: [cell(name, one[name]) for one in others.values()] for name in measures}
    return {name: cells for name, cells in table.items() if any(one.p for one in cells)}


def cell(name: str, test: Mapping[str, Any]) -> Cell:
    """Of one test; dashes where no row has a value in both systems."""
    if test["p"] is None:
        return Cell("–", "", "")
    if "ratio" in test:
        low, high = test["interval"] or (None, None)
        interval = f"{low:.2f} … {high:.2f}" if low is not None and low != high else ""
        return Cell(f"× {test['ratio']:.2f}", interval, p_text(test["p_holm"]))
    measure = measure_of(name)
    return Cell(
        measure.shown_difference(test["difference"]),
        measure.shown_interval(test["interval"]),
        p_text(test["p_holm"]),
    )


def p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def verdict(name: str, test: Mapping[str, Any]) -> str:
    """`better` or `worse` where luck is unlikely after Holm and the measure has a direction."""
    direction = measure_of(name).better
    if test["p_holm"] is None or test["p_holm"] >= LEVEL or not direction:
        return ""
    higher = test["ratio"] > 1 if "ratio" in test else test["difference"] > 0
    return "better" if higher == (direction == "higher") else "worse"


def verdicts(others: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Measure → whether each system is better, worse, or neither."""
    measures = next(iter(others.values()), {})
    return {name: [verdict(name, one[name]) for one in others.values()] for name in measures}
