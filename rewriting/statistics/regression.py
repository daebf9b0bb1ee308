"""A slope, and how sure of it one may be when rows come in clusters.

Legend: N rows, C clusters. Replies of one person resemble each other, so rows are not so many
independent witnesses: variances are summed over clusters (Liang and Zeger 1986). Nor are clusters
of unequal weight so many witnesses: where three people of a thousand are in a group, what is known
of that group comes from three. So degrees of freedom and the small-sample factor come from the
effective number of clusters (Carter, Schnepel and Steigerwald 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
FEWEST_CLUSTERS = 2  # in effect, for an interval


@dataclass(frozen=True, slots=True)
class Slope:
    """An estimate with its 95 % interval and its two-sided p-value; clusters: in which x varies."""

    estimate: float
    low: float
    high: float
    p: float
    rows: int
    clusters: int


def slope(
    y_N: Floats,
    x_N: Floats,
    cluster_N: Codes,
    *,
    given_N: Floats | None = None,
    within: bool = False,
) -> Slope | None:
    """How much y rises with x. None where x does not vary, or too few people carry the answer:
    fewer than three, or fewer than two in effect, such as a group with one person in it.

    given_N: what is held fixed meanwhile: its share is taken off both (Frisch, Waugh and Lovell).
    within: compare a cluster only with itself (its means are taken off all): what changes in a
    person, and not who comes and who stays. With x of 0 and 1 a slope is a difference of means.
    """
    from scipy.stats import t

    codes_N, cluster_count = compact(cluster_N)
    parts = [y_N, x_N] if given_N is None else [y_N, x_N, given_N]
    centred = [part - (means_of(part, codes_N) if within else part.mean()) for part in parts]
    y_N, x_N = (without(part, centred[2:]) for part in centred[:2])
    spread = float(x_N @ x_N)
    if cluster_count < 3 or spread <= 1e-9 * float(centred[1] @ centred[1]):
        return None
    estimate = float(x_N @ y_N) / spread
    score_C = np.bincount(codes_N, x_N * (y_N - estimate * x_N), cluster_count)
    squares_C = np.bincount(codes_N, x_N**2, cluster_count)
    informative = int(np.count_nonzero(squares_C > 1e-12))
    # What a cluster adds to the variance when half of an error is the person's, half the reply's.
    effective = effective_number(squares_C + np.bincount(codes_N, x_N, cluster_count) ** 2)
    if informative < 3 or effective < FEWEST_CLUSTERS:
        return None
    factor = effective / (effective - 1) * (len(x_N) - 1) / max(1, len(x_N) - 2)
    error = float(np.sqrt(factor * score_C @ score_C)) / spread
    reach = float(t.ppf(0.975, effective - 1)) * error
    p = 1.0 if error == 0 and estimate == 0 else 0.0
    if error > 0:
        p = float(2 * t.sf(abs(estimate) / error, effective - 1))
    return Slope(estimate, estimate - reach, estimate + reach, p, len(x_N), informative)


def without(values_N: Floats, given: Sequence[Floats]) -> Floats:
    """The part of centred values that the given ones do not explain."""
    for given_N in given:
        size = float(given_N @ given_N)
        if size > 0:
            values_N = values_N - given_N * (float(given_N @ values_N) / size)
    return values_N


def effective_number(weight_C: NDArray[Any]) -> float:
    """How many equal ones weights amount to: (Σ w)² / Σ w², 0 where there is no weight at all."""
    squares = float(weight_C @ weight_C)
    return float(weight_C.sum()) ** 2 / squares if squares > 0 else 0.0


def clustered_mean(y_N: Floats, cluster_N: Codes) -> tuple[float, float | None, float | None]:
    """The mean with its 95 % interval, rows clustered; no interval of fewer than two in effect."""
    from scipy.stats import t

    codes_N, cluster_count = compact(cluster_N)
    centre = float(y_N.mean())
    effective = effective_number(np.bincount(codes_N, minlength=cluster_count))
    if effective < FEWEST_CLUSTERS:
        return centre, None, None
    sums_C = np.bincount(codes_N, y_N - centre, cluster_count)
    variance = effective / (effective - 1) * float(sums_C @ sums_C) / len(y_N) ** 2
    reach = float(t.ppf(0.975, effective - 1)) * variance**0.5
    return centre, centre - reach, centre + reach


def compact(cluster_N: Codes) -> tuple[Codes, int]:
    """Cluster numbers without gaps, and how many there are."""
    found, codes_N = np.unique(cluster_N, return_inverse=True)
    return codes_N, len(found)


def means_of(values_N: Floats, codes_N: Codes) -> Floats:
    """For each row the mean of its cluster."""
    sums_C = np.bincount(codes_N, values_N)
    return (sums_C / np.bincount(codes_N))[codes_N]
