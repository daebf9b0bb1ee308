"""The report of `evaluate.py responses`: tables and conversations in, one HTML file out.

It loads nothing and runs nothing. Posts are other people's text: the template escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewriting.exchange import MECHANISMS
from rewriting.measures.measure import Measure
from rewriting.report.page import ARROWS
from rewriting.report.template import filled


def render(
    title: str,
    *,
    facts: Mapping[str, str],
    systems: Sequence[str],
    table: Sequence[tuple[Measure[Any], Sequence[str]]],
    emotions: Sequence[tuple[str, Sequence[str]]] = (),
    samples: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The page.

    facts: what a reader should know of the run, name → text. table, emotions: a row each, with a
    cell per system. samples: mappings of context (turns, oldest first), emotion, human (text and
    levels) and responses (system, text, levels).
    """
    return filled(
        "responses.html",
        title=title,
        facts=facts,
        systems=systems,
        table=table,
        emotions=emotions,
        samples=samples,
        arrows=ARROWS,
        mechanisms={name: name.replace("_", " ") for name in MECHANISMS},
    )
