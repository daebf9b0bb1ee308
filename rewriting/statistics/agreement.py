"""Do raters agree? Krippendorff's alpha over drawn items.

evalica computes alpha itself (rewriting/ab/results/statistics.py); its bootstrap draws pairs of
votes as if they were independent. Agreement is a matter of which items were judged, so items are
drawn here, for all draws at once.

Legend: B draws, U items, C categories.
"""

from __future__ import annotations

import numpy as np

from rewriting.statistics.intervals import Interval, drawn_counts, percentile_interval


def alpha_interval(counts_UC: np.ndarray, *, seed: int, resamples: int = 2000) -> Interval:
    """The 95 % bootstrap interval of nominal alpha, drawing items."""
    drawn_BU = drawn_counts(len(counts_UC), resamples, np.random.default_rng(seed))
    values_B = nominal_alpha(counts_UC, drawn_BU.astype(float))
    return percentile_interval(values_B[~np.isnan(values_B)])


def nominal_alpha(counts_UC: np.ndarray, weight_BU: np.ndarray) -> np.ndarray:
    """[B]: Krippendorff's alpha of each weighting of the items, from how often each category came.

    NaN where a weighting leaves one category only.
    """
    total_U = counts_UC.sum(1)
    disagreement_U = (np.square(total_U) - np.square(counts_UC).sum(1)) / (total_U - 1)
    category_BC = weight_BU @ counts_UC
    total_B = category_BC.sum(1)
    expected_B = np.square(total_B) - np.square(category_BC).sum(1)
    observed_B = (weight_BU @ disagreement_U) * (total_B - 1)
    return 1 - np.divide(
        observed_B, expected_B, out=np.full(len(total_B), np.nan), where=expected_B > 0
    )
