"""Bootstrap intervals that draw whole groups with replacement.

Replies to one post are not independent, so seekers are drawn, never rows. scipy's bootstrap draws
single rows and cannot keep groups together; these draw group numbers at once, as arrays.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

Interval = tuple[float, float]


def bootstrap_interval(
    values: Sequence[float | None],
    groups: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = 2000,
    level: float = 0.95,
) -> Interval | None:
    """The bootstrap interval of the mean.

    groups: which values belong together. None is no value. The interval is None where fewer than
    two groups have any.

    Percentiles, moved out as far as Student's t lies outside the normal distribution: plain ones
    are too narrow for few groups (Hesterberg 2015, arXiv 1411.5279, the expanded percentile).
    """
    import numpy as np
    from scipy.stats import norm, t

    sums: dict[Hashable, float] = defaultdict(float)
    counts: dict[Hashable, int] = defaultdict(int)
    for value, group in zip(values, groups, strict=True):
        if value is not None:
            sums[group] += value
            counts[group] += 1
    if len(sums) < 2:
        return None
    totals, sizes = np.array(list(sums.values())), np.array(list(counts.values()))
    drawn = np.random.default_rng(seed).integers(len(totals), size=(resamples, len(totals)))
    means = totals[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    size = len(totals)
    tail = norm.cdf(math.sqrt(size / (size - 1)) * t.ppf((1 - level) / 2, size - 1))
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def grouped_interval(
    statistic: Callable[[np.ndarray], float],
    groups: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = 1000,
) -> Interval | None:
    """The 95 % bootstrap interval of any statistic of rows; None for one group, or where no draw
    tells anything.

    statistic: of row numbers, some more than once. What it cannot say of a draw (NaN) is left out.
    """
    import numpy as np

    rows: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    if len(rows) < 2:
        return None
    parts = [np.array(own) for own in rows.values()]
    draws = np.random.default_rng(seed).integers(len(parts), size=(resamples, len(parts)))
    values = np.array([statistic(np.concatenate([parts[k] for k in draw])) for draw in draws])
    known = values[~np.isnan(values)]
    return percentile_interval(known) if len(known) else None


def drawn_counts(size: int, resamples: int, generator: np.random.Generator) -> Any:
    """[resamples, size]: how often each of `size` groups is drawn when `size` are drawn."""
    return generator.multinomial(size, [1 / size] * size, size=resamples)


def percentile_interval(values: Any) -> Interval:
    """Between which two numbers the middle 95 % of the drawn values lie."""
    import numpy as np

    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
