"""What a training run came to, in a few lines of text, from the rows of its log alone.

Figures of dev, and others that are measured now and then, are compared from the first measurement
to the last. What every step has is noisy: there the mean of the first quarter of the steps is
compared with that of the last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Row = Mapping[str, float]
HELD: Final = 0.01
"""A figure held where it changed by less than this share of its larger value."""
SHOWN: Final = 8
FIRST: Final = ("dev", "reward", "loss")
"""What names begin with that are told first."""
LEFT_OUT: Final = ("step", "rate", "epoch", "learning_rate", "num_tokens", "seconds", "kl/")
"""What names begin with that say nothing of how it went."""


@dataclass(frozen=True, slots=True)
class Change:
    """A figure, and what it was at the beginning and at the end."""

    name: str
    before: float
    after: float

    @property
    def held(self) -> bool:
        largest = max(abs(self.before), abs(self.after))
        return abs(self.after - self.before) <= HELD * largest


def changes(rows: Sequence[Row]) -> list[Change]:
    """What became of each figure that the log has twice or more, in the order of `FIRST`."""
    names = dict.fromkeys(name for row in rows for name in row if not name.startswith(LEFT_OUT))
    found = []
    for name in names:
        values = [row[name] for row in rows if _is_number(row.get(name))]
        if len(values) > 1:
            rare = name.startswith("dev") or 2 * len(values) <= len(rows)
            part = 1 if rare else max(1, len(values) // 4)
            found.append(Change(name, _mean(values[:part]), _mean(values[-part:])))
    return sorted(found, key=_place)


def run_summary(rows: Sequence[Row], title: str) -> list[str]:
    """Lines that say what rose, what fell and what held, from which to which value."""
    if not rows:
        return []
    steps = int(max(row.get("step", 0) for row in rows)) or len(rows)
    found = changes(rows)
    lines = [f"{title}: {steps:,} step{'s' * (steps != 1)}"]
    if not found:
        return [*lines, "  too few to compare their beginning with their end"]
    moved = {
        "rose": [one for one in found if not one.held and one.after > one.before],
        "fell": [one for one in found if not one.held and one.after < one.before],
    }
    for word, some in moved.items():
        for place, one in enumerate(some[:SHOWN]):
            values = f"{_shown(one.before)} → {_shown(one.after)}"
            lines.append(f"  {word if not place else '':<6}{one.name:<31} {values}")
        if len(some) > SHOWN:
            lines.append(f"  {'':<6}and {len(some) - SHOWN} more in the log")
    if held := [one.name for one in found if one.held]:
        more = f", and {len(held) - SHOWN} more" if len(held) > SHOWN else ""
        lines.append(f"  held  {', '.join(held[:SHOWN])}{more}")
    return lines


def _place(change: Change) -> int:
    for place, start in enumerate(FIRST):
        if change.name.startswith(start):
            return place
    return len(FIRST)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _shown(value: float) -> str:
    return f"{value:.4g}"
