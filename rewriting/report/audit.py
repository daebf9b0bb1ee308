"""The report of `evaluate.py audit`: figures and posts in, one self-contained HTML file out.

It loads nothing and runs nothing. Posts are other people's text: the template escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from rewriting.report.charts import Dot, dot_plot
from rewriting.report.template import filled


def render(
    title: str,
    *,
    facts: Mapping[str, str],
    figures: Mapping[str, Any],
    headlines: Mapping[str, str],
    kinds: Mapping[str, str],
    samples: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The page.

    facts: what a reader should know of the run, name → text. figures: what `evaluate.py audit`
    writes as JSON. headlines: a figure → what the real sentence is compared with there. kinds: a
    kind of sentence → its name in headings. samples: mappings of id, seeker_post, before (the reply
    without the sentence), mechanism, and paid (title, sentence, total, values by term).
    """
    return filled(
        "audit.html",
        filters={"share": share, "bounds": bounds, "number": number},
        title=title,
        facts=facts,
        figures=figures,
        headlines=headlines,
        kinds=kinds,
        plot=wins_plot(figures),
        samples=samples,
    )


def wins_plot(figures: Mapping[str, Any]) -> Markup:
    """How often the real sentence beats each stock and nonsense sentence, with intervals."""
    rows: list[Dot] = []
    for kind in ("stock", "nonsense"):
        rows.append(Dot(kind))
        rows += [
            Dot(
                sentence,
                one["matched_wins"],
                figures["intervals"][kind][sentence],
                share(one["matched_wins"]),
                muted=kind == "nonsense",
            )
            for sentence, one in figures[kind].items()
        ]
    return dot_plot(rows, "how often the real sentence is paid more, in per cent")


def share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} %"


def bounds(interval: Sequence[float] | None) -> str:
    return "{:.0f} … {:.0f}".format(*interval) if interval else ""


def number(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 3) + 0.0:.3f}".replace("-", "−")
