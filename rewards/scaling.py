"""Running moments, so that a term can be measured in its own standard deviations.

Terms live on different scales (empathy on 0..6, log-probabilities far below 0), and the scales move
while the policy learns. PPO's usual cure is to divide by a running standard deviation (Engstrom et
al., arXiv 2005.12729); EmpRL (arXiv 2408.02976) trains with it. The moments are counted as Welford
(1962) does and merged as Chan, Golub and LeVeque (1979) do, in plain floats: what a checkpoint
saves, and what several processes agree on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

SCALES: Final = ("std", "whiten")
"""std: divide by the running standard deviation. whiten: subtract the running mean before that."""

Gather = Callable[[Any], list[Any]]
"""From a value of this process to the list of every process's value."""


@dataclass(frozen=True, slots=True)
class Moments:
    """How many values there were, their mean, and the sum of their squared deviations from it."""

    count: int = 0
    mean: float = 0.0
    m2: float = 0.0

    @property
    def std(self) -> float:
        """The sample standard deviation so far; 0 until there are two values."""
        return math.sqrt(self.m2 / (self.count - 1)) if self.count > 1 else 0.0


def moments_of(values: Iterable[float | None]) -> Moments:
    """The moments of a batch. None does not count."""
    count, mean, m2 = 0, 0.0, 0.0
    for value in values:
        if value is not None:
            count += 1
            delta = value - mean
            mean += delta / count
            m2 += delta * (value - mean)
    return Moments(count, mean, m2)


def merged(parts: Iterable[Moments]) -> Moments:
    """The moments of all the values behind several moments."""
    whole = Moments()
    for part in parts:
        count = whole.count + part.count
        if not count:
            continue
        delta = part.mean - whole.mean
        mean = whole.mean + delta * part.count / count
        m2 = whole.m2 + part.m2 + delta * delta * whole.count * part.count / count
        whole = Moments(count, mean, m2)
    return whole


def scaled(value: float, moments: Moments, scale: str | None) -> float:
    """A value on its term's scale. As it is while the values seen do not differ yet."""
    if scale is None:
        return value
    centred = value - moments.mean if scale == "whiten" else value
    return centred / moments.std if moments.std > 0 else centred
