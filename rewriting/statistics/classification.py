"""How well labels are predicted: accuracy, F1 and AUROC, as shares from 0 to 1.

By scikit-learn. What a bootstrap or a grid of thresholds asks thousands of times stands here a
second time, some forty times as fast and tested to agree: `rank_auroc`, and F1 of counts of any
leading shape (`confusion`, `label_f1`, `…_of_counts`), so that no row is read twice.

Legend: L labels (gold, then predicted).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def accuracy(gold: Any, predicted: Any) -> float:
    """The share of rows with the right label."""
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(gold, predicted))


def macro_f1(gold: Any, predicted: Any) -> float:
    """The mean F1 of the labels that occur in `gold` or `predicted`."""
    from sklearn.metrics import f1_score

    return float(f1_score(gold, predicted, average="macro", zero_division=0))


def weighted_f1(gold: Any, predicted: Any) -> float:
    """The mean F1 of the labels, each weighted by how often it is in `gold`.

    A label that `gold` never has counts only where it is predicted wrongly, in the F1 of the
    others. EmpRL's measure (arXiv 2408.02976).
    """
    from sklearn.metrics import f1_score

    return float(f1_score(gold, predicted, average="weighted", zero_division=0))


def auroc(gold: Any, scores: Any, weights: Sequence[float] | None = None) -> float:
    """The chance that a positive scores above a negative, ties counted half.

    NaN where there is nothing on one side. weights: how much each row counts.
    """
    from sklearn.metrics import roc_auc_score

    if len(set(map(bool, gold))) < 2:
        return float("nan")
    return float(roc_auc_score(gold, scores, sample_weight=weights))


def rank_auroc(gold: np.ndarray, scores: np.ndarray) -> float:
    """What `auroc` says of unweighted rows, by their ranks (Mann and Whitney's U); for draws."""
    from scipy.stats import rankdata

    positives = int(gold.sum())
    pairs = positives * (len(gold) - positives)
    if not pairs:
        return float("nan")
    ranks = float(rankdata(scores)[gold].sum())
    return (ranks - positives * (positives + 1) / 2) / pairs


def confusion(
    gold: Any, predicted: Any, labels: int, groups: Any = None, group_count: int = 1
) -> np.ndarray:
    """[L, L]: how often each (gold, predicted) came; [groups, L, L] by the group of each row."""
    import numpy as np

    places = np.asarray(gold, int) * labels + np.asarray(predicted, int)
    if groups is None:
        return np.bincount(places, minlength=labels**2).reshape(labels, labels)
    places = places + np.asarray(groups, int) * labels**2
    counts = np.bincount(places, minlength=group_count * labels**2)
    return counts.reshape(group_count, labels, labels)


def label_f1(counts_LL: np.ndarray) -> np.ndarray:
    """[..., L, L] counts → [..., L]: the F1 of each label, 0 for one that nobody has."""
    import numpy as np

    hits_L = np.diagonal(counts_LL, axis1=-2, axis2=-1)
    totals_L = counts_LL.sum(axis=-1) + counts_LL.sum(axis=-2)
    return np.asarray(2 * hits_L / np.maximum(totals_L, 1))


def macro_f1_of_counts(counts_LL: np.ndarray) -> np.ndarray:
    """[..., L, L] counts → [...]: what `macro_f1` says of such rows."""
    totals_L = counts_LL.sum(axis=-1) + counts_LL.sum(axis=-2)
    return label_f1(counts_LL).sum(axis=-1) / (totals_L > 0).sum(axis=-1)


def weighted_f1_of_counts(counts_LL: np.ndarray) -> np.ndarray:
    """[..., L, L] counts → [...]: what `weighted_f1` says of such rows."""
    gold_L = counts_LL.sum(axis=-1)
    return (label_f1(counts_LL) * gold_L).sum(axis=-1) / gold_L.sum(axis=-1)
