"""Plots as SVG inside the page: colours come from its style sheet, so they follow light and dark.

Drawn here rather than by matplotlib, whose SVG brings fonts and colours of its own and is fifty
times as large. All are as wide as a phone; the page puts as many side by side as it has room for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from rewriting.report.curves import Curve, smoothed, thinned

WIDTH = 360
LABELS = 108  # the plot starts here, right of the labels
VALUES = 300  # and ends here, left of the values
ROW = 24
LONGEST_LABEL = 16


@dataclass(frozen=True, slots=True)
class Dot:
    """A row of a dot plot; without anything `shown` it is a heading. muted: for comparison only."""

    label: str
    value: float | None = None
    interval: Sequence[float] | None = None
    shown: str = ""
    muted: bool = False


def dot_plot(rows: Sequence[Dot], description: str) -> Markup:
    """A dot and its interval for each row, on one axis. Nothing where no row has a value."""
    known = [row.value for row in rows if row.value is not None]
    known += [bound for row in rows for bound in row.interval or ()]
    if not known:
        return Markup("")
    ticks = nice_ticks(min(known), max(known))
    across = scale(ticks[0], ticks[-1], LABELS, VALUES)
    bottom = len(rows) * ROW + 4
    parts = []
    for tick in ticks:
        x = across(tick)
        kind = "zero" if tick == 0 else "grid"
        parts.append(tag("line", class_=kind, x1=x, x2=x, y1=2, y2=bottom))
        parts.append(tag("text", number_text(tick), class_="tick middle", x=x, y=bottom + 14))
    for number, row in enumerate(rows):
        y = number * ROW + ROW / 2 + 2
        if not row.shown:
            parts.append(tag("text", row.label, class_="heading", x=0, y=y + 4))
            continue
        parts.append(_label(row.label, y))
        kind = "muted" if row.muted else "strong"
        if row.interval is not None:
            low, high = map(across, row.interval)
            parts.append(tag("line", class_=f"whisker {kind}", x1=low, x2=high, y1=y, y2=y))
        if row.value is not None:
            parts.append(tag("circle", class_=f"dot {kind}", cx=across(row.value), cy=y, r=5))
        parts.append(tag("text", row.shown, class_="value end", x=WIDTH, y=y + 4))
    return _svg(parts, bottom + 20, description)


def share_plot(rows: Sequence[tuple[str, Sequence[float]]], description: str) -> Markup:
    """A bar of 100 % for each row, cut into shares; the style sheet colours share0, share1, …"""
    parts = []
    for number, (label, shares) in enumerate(rows):
        top = number * ROW + 4
        parts.append(_label(label, top + 9))
        start = float(LABELS)
        for place, share in enumerate(shares):
            width = (WIDTH - LABELS) * share / 100
            if width > 0:
                kind, wide = f"share{place}", max(width - 1, 0.5)
                parts.append(tag("rect", class_=kind, x=start, y=top, width=wide, height=18))
            if width > 24:
                middle = start + width / 2
                kind = f"on-share{place} middle"
                parts.append(tag("text", f"{share:.0f}", class_=kind, x=middle, y=top + 13))
            start += width
    return _svg(parts, len(rows) * ROW + 4, description)


def line_plot(curve: Curve, description: str, height: int = 150) -> Markup:
    """A curve over the steps: its points faintly, their smoothed course and dev's dots on top."""
    steps = [*curve.steps, *(step for step, _ in curve.dev)]
    curve = thinned(curve)
    known = [*curve.values, *(value for _, value in curve.dev)]
    ticks = nice_ticks(min(known), max(known))
    left, right, bottom = 46, WIDTH - 6, height - 22
    across = scale(min(steps), max(steps), left, right)
    down = scale(ticks[0], ticks[-1], bottom, 8)
    parts = []
    for tick in ticks:
        kind = "zero" if tick == 0 else "grid"
        y = down(tick)
        parts.append(tag("line", class_=kind, x1=left, x2=right, y1=y, y2=y))
        parts.append(tag("text", number_text(tick), class_="tick end", x=left - 6, y=y + 4))
    window = max(0.1, 5 / len(curve.values))  # five steps at least: single ones are noise
    course = zip(curve.steps, smoothed(curve.values, window), strict=True)
    raw = zip(curve.steps, curve.values, strict=True)
    for points, kind in ((raw, "raw"), (course, "course"), (curve.dev, "dev")):
        places = [(across(step), down(value)) for step, value in points]
        if places:
            path = " ".join(f"{x:g},{y:g}" for x, y in places)
            parts.append(tag("polyline", class_=kind, points=path))
        if kind == "dev":
            parts += [tag("circle", class_="dev", cx=x, cy=y, r=3.5) for x, y in places]
    for anchor, x, step in (("start", left, min(steps)), ("end", right, max(steps))):
        text = f"step {number_text(step)}"
        parts.append(tag("text", text, class_=f"tick {anchor}", x=x, y=height - 4))
    return _svg(parts, height, description)


def nice_ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers, about so many, that enclose a range; two at least."""
    if high <= low:
        pad = abs(low) / 10 or 1.0
        low, high = low - pad, high + pad
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(f * power for f in (1, 2, 2.5, 5, 10) if f * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{number * step:.10g}") for number in range(first, last + 1)]


def scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Where a value between low and high lies between start and end, to a tenth of a unit."""

    def place(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(start + share * (end - start), 1)

    return place


def number_text(value: float) -> str:
    return f"{value:,.6g}".replace("-", "−")


def tag(name: str, text: str = "", *, class_: str = "", **attributes: float | str) -> Markup:
    """An element of SVG; whatever is put into it is escaped."""
    given = {"class": class_, **attributes}
    inside = Markup("").join(Markup(' {}="{}"').format(key, value) for key, value in given.items())
    return Markup("<{0}{1}>{2}</{0}>").format(name, inside, text)


def _label(text: str, y: float) -> Markup:
    """A label that fits into its column; all of it shows on pointing at it."""
    if len(text) <= LONGEST_LABEL:
        return tag("text", text, class_="label", x=0, y=y + 4)
    short = escape(text[: LONGEST_LABEL - 1] + "…")
    whole = short + tag("title", text)
    return tag("text", whole, class_="label", x=0, y=y + 4)


def _svg(parts: Sequence[Markup], height: float, description: str) -> Markup:
    head = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">')
    body = Markup("").join(parts)
    return head.format(WIDTH, round(height), description) + body + Markup("</svg>")
