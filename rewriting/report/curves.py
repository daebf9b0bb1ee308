"""Curves of a training: what its log.jsonl says of the reward and of every term."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rewriting.errors import UserError
from rewriting.runtime.files.json_files import parse_json

TERM, DEV = "rewards/", "dev/"
MAX_POINTS = 240


@dataclass(frozen=True, slots=True)
class Curve:
    """A value over the steps of a training. dev: (step, value) where it was measured on dev."""

    name: str
    steps: tuple[float, ...]
    values: tuple[float, ...]
    dev: tuple[tuple[float, float], ...] = ()


def read_log(path: Path) -> list[Curve]:
    """The curves of a log: `reward` first, then every `rewards/TERM`, in the order they come.

    Single steps see few exchanges, each step others; `dev/…` is always of the same ones. A line is
    a JSON object with `step`. Other numbers of the log are left to the training's own plots. A line
    that a stopped run has not finished ends the log.
    """
    if not path.is_file():
        raise UserError(f"{path}: there is no such training log.")
    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    dev: dict[str, list[tuple[float, float]]] = defaultdict(list)
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is no training log: it is not UTF-8.") from error
    for number, line in enumerate(lines, start=1):
        row = _row(path, number, line)
        if row is None:
            break
        for key, value in row.items():
            name = key.removeprefix(DEV)
            if (name == "reward" or name.startswith(TERM)) and _is_number(value):
                where = points if name == key else dev
                where[name.removeprefix(TERM)].append((row["step"], value))
    if not points:
        raise UserError(f"{path} holds neither reward nor {TERM}… beside step: no curves in it.")
    names = sorted(points, key=lambda name: name != "reward")
    found = []
    for name in names:
        steps, values = zip(*points[name], strict=True)
        found.append(Curve(name, steps, values, tuple(dev[name])))
    return found


def _row(path: Path, number: int, line: str) -> dict[str, Any] | None:
    try:
        row = parse_json(line)
    except ValueError as error:
        if not line.endswith("\n"):
            return None
        raise UserError(f"{path}, line {number}: not valid JSON ({error}).") from error
    if not isinstance(row, dict) or not _is_number(row.get("step")):
        raise UserError(f"{path}, line {number}: a line of a training log is an object with step.")
    return row


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def thinned(curve: Curve, max_points: int = MAX_POINTS) -> Curve:
    """Means over equal stretches of the curve, where it has more points than a plot can show."""
    count = len(curve.steps)
    if count <= max_points:
        return curve
    cuts = [count * number // max_points for number in range(max_points + 1)]
    stretches = [slice(a, b) for a, b in pairwise(cuts)]
    return Curve(
        curve.name,
        tuple(_mean(curve.steps[one]) for one in stretches),
        tuple(_mean(curve.values[one]) for one in stretches),
        curve.dev,
    )


def smoothed(values: Sequence[float], share: float = 0.1) -> list[float]:
    """Means over a window around each value, this share of the curve wide and narrower at its
    ends: the direction behind the noise of single batches."""
    half = int(len(values) * share / 2)
    return [_mean(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
