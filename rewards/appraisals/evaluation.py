"""How well appraisals and alignments are found: figures with intervals, and what to beat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewards.appraisals.alignment.model import KINDS, Alignment
from rewards.appraisals.alignment.pairs import Grid
from rewards.appraisals.appraiser import Appraiser
from rewards.appraisals.units import LABELS, Unit, sentences_of, units_of
from rewriting.data.appraisals import ROLES, AppraisedExchange
from rewriting.statistics.classification import (
    confusion,
    label_f1,
    macro_f1_of_counts,
    rank_auroc,
)
from rewriting.statistics.intervals import Interval, grouped_interval

RESAMPLES = 1000
Figures = dict[str, Any]
Array = NDArray[Any]
Measured = Callable[[Array], float]
"""A figure of some rows, by their numbers."""


def appraisal_figures(units: Sequence[Unit], called: Sequence[str], *, seed: int = 0) -> Figures:
    """Percentages: accuracy, macro_f1 over ten labels, F1 of each label; intervals; n."""
    gold = np.array([LABELS.index(unit.label) for unit in units])
    found = np.array([LABELS.index(label) for label in called])
    groups = [unit.group for unit in units]

    def counts(rows: Array) -> Array:
        return confusion(gold[rows], found[rows], len(LABELS))

    measures: dict[str, Measured] = {
        "accuracy": lambda rows: 100 * float(np.mean(gold[rows] == found[rows])),
        "macro_f1": lambda rows: 100 * float(macro_f1_of_counts(counts(rows))),
    }
    everything = np.arange(len(units))
    return {
        **{name: measure(everything) for name, measure in measures.items()},
        "f1": dict(zip(LABELS, (100 * label_f1(counts(everything))).tolist(), strict=True)),
        "count": {label: int((gold == k).sum()) for k, label in enumerate(LABELS)},
        "intervals": intervals_of(measures, groups, seed),
        "n": len(units),
    }


def intervals_of(
    measures: Mapping[str, Measured], groups: Sequence[str], seed: int
) -> dict[str, Interval | None]:
    """The 95 % interval of each figure, drawing seekers."""
    return {
        name: grouped_interval(measure, groups, seed=seed, resamples=RESAMPLES)
        for name, measure in measures.items()
    }


def called_by(appraiser: Appraiser, units: Sequence[Unit]) -> list[str]:
    probabilities = appraiser.probabilities([u.text for u in units], [u.role for u in units])
    return [LABELS[place] for place in probabilities.argmax(dim=-1).tolist()]


def majority(train: Sequence[Unit], units: Sequence[Unit]) -> list[str]:
    """The most frequent label, whoever speaks."""
    label = Counter(unit.label for unit in train).most_common(1)[0][0]
    return [label] * len(units)


def majority_by_role(train: Sequence[Unit], units: Sequence[Unit]) -> list[str]:
    """The most frequent label of the target's, and of the observer's sentences."""
    by_role = {
        role: majority([unit for unit in train if unit.role == role] or train, units[:1])[0]
        for role in ROLES
    }
    return [by_role[unit.role] for unit in units]


def word_weights(train: Sequence[Unit], units: Sequence[Unit]) -> list[str]:
    """Logistic regression on tf-idf of words and word pairs, with the role as one more word."""
    if len({unit.label for unit in train}) < 2:
        return majority(train, units)
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\w+|\?")
    model = LogisticRegression(C=10, class_weight="balanced", max_iter=2000)
    features = words.fit_transform([f"role{u.role} {u.text}" for u in train])
    model.fit(features, [u.label for u in train])
    return list(model.predict(words.transform([f"role{u.role} {u.text}" for u in units])))


BASELINES: dict[str, Callable[[Sequence[Unit], Sequence[Unit]], list[str]]] = {
    "majority": majority,
    "majority by role": majority_by_role,
    "tf-idf logistic regression": word_weights,
}


def flat_scores(model: Alignment, grids: Sequence[Grid]) -> tuple[Array, Array, Array, list[str]]:
    """Score, aligned or not, advice or not, and group of every pair of the grids."""
    scores = [scores.flatten().numpy() for scores in model.scores(grids)]
    gold = [grid.gold() for grid in grids]
    advice = [grid.advice() for grid in grids]
    groups = [grid.group for grid in grids for _ in range(grid.size)]
    return np.concatenate(scores), np.concatenate(gold), np.concatenate(advice), groups


def alignment_figures(model: Alignment, grids: Sequence[Grid], *, seed: int = 0) -> Figures:
    """Percentages: auroc, f1, precision, recall of all pairs and of each kind; intervals; n."""
    scores, gold, advice, groups = flat_scores(model, grids)
    figures: Figures = pair_figures(scores, gold)
    measures: dict[str, Measured] = {
        "auroc": lambda rows: 100 * rank_auroc(gold[rows], scores[rows]),
        "f1": lambda rows: 100 * _f1(gold[rows], scores[rows] > 0),
    }
    figures["intervals"] = intervals_of(measures, groups, seed)
    for kind, chosen in zip(KINDS, (~advice, advice), strict=True):
        figures[kind] = pair_figures(scores[chosen], gold[chosen])
    return figures


def alignment_difference(
    first: Alignment, second: Alignment, grids: Sequence[Grid], *, seed: int = 0
) -> Figures:
    """What the first has more of auroc and f1 than the second, drawing the same seekers for both.

    Tighter than two intervals side by side: both models find the same posts hard.
    """
    (one, gold, _, groups), (other, *_) = (flat_scores(model, grids) for model in (first, second))
    measures: dict[str, Measured] = {
        "auroc": lambda rows: (
            100 * (rank_auroc(gold[rows], one[rows]) - rank_auroc(gold[rows], other[rows]))
        ),
        "f1": lambda rows: (
            100 * (_f1(gold[rows], one[rows] > 0) - _f1(gold[rows], other[rows] > 0))
        ),
    }
    everything = np.arange(len(gold))
    return {
        **{name: measure(everything) for name, measure in measures.items()},
        "intervals": intervals_of(measures, groups, seed),
    }


def pair_figures(scores: Array, gold: Array) -> Figures:
    """Percentages; auroc is None where all pairs, or none, are aligned."""
    called = scores > 0
    hits = int((called & gold).sum())
    ranked = 100 * rank_auroc(gold, scores)
    return {
        "auroc": None if np.isnan(ranked) else ranked,
        "f1": 100 * _f1(gold, called),
        "precision": 100 * hits / max(1, int(called.sum())),
        "recall": 100 * hits / max(1, int(gold.sum())),
        "n": len(gold),
        "aligned": int(gold.sum()),
    }


def fit_thresholds(model: Alignment, grids: Sequence[Grid]) -> None:
    """Set the model's thresholds to those of the best F1 on the grids, one for each kind."""
    model.thresholds.update(dict.fromkeys(KINDS, 0.0))
    scores, gold, advice, _ = flat_scores(model, grids)
    for kind, chosen in zip(KINDS, (~advice, advice), strict=True):
        if gold[chosen].any():
            model.thresholds[kind] = best_threshold(scores[chosen], gold[chosen]) / model.scale


def best_threshold(scores: Array, gold: Array) -> float:
    """Between two neighbouring scores: where calling all above it aligned has the best F1."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(gold[order])
    f1 = 2 * hits / (np.arange(1, len(order) + 1) + gold.sum())
    f1[:-1][ranked[:-1] == ranked[1:]] = -1.0  # equal scores are called together
    best = int(f1.argmax())
    below = ranked[best + 1] if best + 1 < len(ranked) else ranked[best] - 1.0
    return float((ranked[best] + below) / 2)


def _f1(gold: Array, called: Array) -> float:
    """The F1 of aligned pairs, by counts, since a bootstrap asks a thousand times."""
    return float(label_f1(confusion(gold, called, 2))[1])


def of_appraisals(
    appraiser: Any,
    train: list[AppraisedExchange],
    chosen: list[AppraisedExchange],
    *,
    seed: int = 0,
) -> dict[str, Any]:
    """System → cut (parts, sentences) → figures; the baselines learn from the train part."""
    known = units_of(train)
    cuts = {"parts": units_of(chosen), "sentences": sentences_of(chosen)}
    every = list(dict.fromkeys(unit for units in cuts.values() for unit in units))
    called = dict(zip(every, called_by(appraiser, every), strict=True))
    found: dict[str, Any] = {"model": {}}
    for cut, units in cuts.items():
        found["model"][cut] = appraisal_figures(units, [called[u] for u in units], seed=seed)
        for name, call in BASELINES.items() if known else ():
            figures = appraisal_figures(units, call(known, units), seed=seed)
            found.setdefault(name, {})[cut] = figures
    return found
