"""The log of a training run as one picture, drawn while it goes on.

The page of a report has curves of its own, drawn without matplotlib (rewriting/report/charts.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewriting.runtime.files.disk import disk_errors

COLUMNS = 3


def plot_curves(
    rows: Sequence[Mapping[str, float]],
    path: Path,
    title: str,
    others: Mapping[str, Sequence[str]],
) -> None:
    """A picture with a panel for the reward, each term of it and its parts, where there are any.

    others: more panels, title → the figures in it.
    """
    from matplotlib.figure import Figure

    panels = {"reward": ["reward"]} | reward_panels(rows) | dict(others)
    known = {name for row in rows for name in row}
    panels = {name: keys for name, keys in panels.items() if known.intersection(keys)}
    columns = min(COLUMNS, len(panels)) or 1
    lines = math.ceil(len(panels) / columns) or 1
    width, height = 4 * columns, 2.6 * lines + 0.8
    figure = Figure(figsize=(width, height))
    # By hand: matplotlib's own layouts take several times as long as the drawing.
    left, right, bottom, top = 0.72 / width, 1 - 0.24 / width, 0.6 / height, 1 - 0.8 / height
    figure.subplots_adjust(left, bottom, right, top, wspace=0.25, hspace=0.45)
    figure.suptitle(title)
    figure.supxlabel("step")
    for number, (name, keys) in enumerate(panels.items(), 1):
        axes = figure.add_subplot(lines, columns, number, title=name)
        for key in (key for key in keys if key in known):
            label = key.rpartition("/")[2].removeprefix("share_")
            _curve(axes, rows, key, label=label, smooth=True)
            _curve(axes, rows, f"dev/{key}", label=f"{label}, dev", marker="o", markersize=3)
        if len(keys) > 1 or f"dev/{keys[0]}" in known:
            axes.legend(fontsize="x-small")
    with disk_errors(path):
        figure.savefig(path, dpi=100)


def reward_panels(rows: Sequence[Mapping[str, float]]) -> dict[str, Sequence[str]]:
    """Title → figures: a panel for each term, and one for all parts of a term together."""
    panels: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        if name.startswith("rewards/"):
            term, _, part = name.removeprefix("rewards/").partition("/")
            panels.setdefault(f"{term}, by part" if part else term, []).append(name)
    return dict(panels)


def _curve(
    axes: Any, rows: Sequence[Mapping[str, float]], key: str, smooth: bool = False, **style: Any
) -> None:
    """One figure over the steps; where it is noisy, faint, with its moving mean on top."""
    steps = [row["step"] for row in rows if key in row]
    values = [row[key] for row in rows if key in row]
    if not values:
        return
    if smooth and len(values) >= 20:
        (faint,) = axes.plot(steps, values, lw=0.5, alpha=0.35)
        length = max(5, len(values) // 20)
        before = [values[max(0, end - length) : end] for end in range(1, len(values) + 1)]
        values = [math.fsum(window) / len(window) for window in before]
        style["color"] = faint.get_color()
    axes.plot(steps, values, lw=1.4, **style)
