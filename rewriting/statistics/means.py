"""Means of values of which some may be missing."""

from __future__ import annotations

import math
from collections.abc import Iterable


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
