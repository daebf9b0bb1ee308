"""The plots of a study, in the manner of rewriting/report/charts.py: SVG that the page colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rewriting.report.charts import LABELS, ROW, VALUES, WIDTH, scale, tag

LONGEST_LABEL = 16


@dataclass(frozen=True, slots=True)
class Rate:
    """A win rate in per cent and its interval; muted: for comparison only."""

    label: str
    rate: float | None
    interval: Sequence[float] | None = None
    muted: bool = False


def win_plot(rows: Sequence[Rate], description: str) -> Markup:
    """Win rates on an axis from 0 to 100 %, with a line where nobody wins: at one half."""
    across = scale(0, 100, LABELS, VALUES)
    bottom = len(rows) * ROW + 4
    parts = []
    for tick in (0, 25, 50, 75, 100):
        kind, x = "zero" if tick == 50 else "grid", across(tick)
        parts.append(tag("line", class_=kind, x1=x, x2=x, y1=2, y2=bottom))
        parts.append(tag("text", f"{tick}", class_="tick middle", x=x, y=bottom + 14))
    for number, row in enumerate(rows):
        y = number * ROW + ROW / 2 + 2
        kind = "muted" if row.muted else "strong"
        label = row.label
        if len(label) > LONGEST_LABEL:
            label = label[: LONGEST_LABEL - 1] + "…"
        parts.append(tag("text", label, class_="label", x=0, y=y + 4))
        if row.interval is not None:
            low, high = map(across, row.interval)
            parts.append(tag("line", class_=f"whisker {kind}", x1=low, x2=high, y1=y, y2=y))
        if row.rate is not None:
            parts.append(tag("circle", class_=f"dot {kind}", cx=across(row.rate), cy=y, r=5))
        shown = "–" if row.rate is None else f"{row.rate:.0f} %"
        parts.append(tag("text", shown, class_="value end", x=WIDTH, y=y + 4))
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">')
    inside = Markup("").join(parts)
    return head.format(WIDTH, bottom + 20, description) + inside + Markup("</svg>")
