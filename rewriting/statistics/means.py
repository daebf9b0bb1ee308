"""Means of values of which some may be missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def geometric_mean(values: Sequence[float]) -> float:
    """The mean of perplexities: one odd response of thousands does not outweigh the rest."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))
