"""An explainable boosting machine as what it is: one table of scores per feature, added up.

interpret-core fits it (arXiv 1909.09223). It writes JSON, but reading that back is private there
and called untested, and a pickle runs code when it is opened. The fitted machine is small and
plain, so it is held and stored here as its tables, and predicts with a few lines of numpy.

Legend: N rows, F features, K levels that occurred in training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rewriting.exchange import LEVELS

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_BINS: Final = 256
"""Bins of a feature. The labelled rows are a few thousand: finer bins fill the file with noise."""
MAX_ROUNDS: Final = 2000
"""Fits on labelled posts stop by themselves before it; on small data, where the features tell every
level, the library's 50,000 would be used up for nothing."""


@dataclass(frozen=True, slots=True)
class AdditiveModel:
    """Step functions of single features, summed under a softmax.

    levels: those that occurred in training, rising; any other has probability 0. edges: for each
    feature the rising cuts between its bins. scores: for each feature [bins, K], where a feature
    with E cuts has E + 1 bins and a value on a cut belongs above it. intercept: [K].
    """

    levels: tuple[int, ...]
    edges: tuple[NDArray[np.float64], ...]
    scores: tuple[NDArray[np.float64], ...]
    intercept: NDArray[np.float64]

    def contributions(self, features_NF: NDArray[Any]) -> NDArray[np.float64]:
        """[N, F, K]: what each feature adds to the logit of each level.

        A softmax does not see a number added to all its logits, so each feature's contributions
        are centred: they sum to 0 over the levels.
        """
        found_FNK = [
            scores[np.searchsorted(edges, column_N, side="right")]
            for edges, scores, column_N in zip(self.edges, self.scores, features_NF.T, strict=True)
        ]
        found_NFK = np.stack(found_FNK, axis=1)
        return found_NFK - found_NFK.mean(axis=2, keepdims=True)

    def probabilities(self, features_NF: NDArray[Any]) -> NDArray[np.float64]:
        """[N, 3]: of the levels 0, 1 and 2."""
        logits_NK = self.intercept + self.contributions(features_NF).sum(axis=1)
        powers_NK = np.exp(logits_NK - logits_NK.max(axis=1, keepdims=True))
        found_N3 = np.zeros((len(features_NF), len(LEVELS)))
        found_N3[:, list(self.levels)] = powers_NK / powers_NK.sum(axis=1, keepdims=True)
        return found_N3

    def row(self) -> dict[str, Any]:
        """The model as JSON; a float written by repr comes back as the same float."""
        return {
            "levels": list(self.levels),
            "intercept": self.intercept.tolist(),
            "edges": [edges.tolist() for edges in self.edges],
            "scores": [scores.tolist() for scores in self.scores],
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> AdditiveModel:
        return cls(
            tuple(row["levels"]),
            tuple(np.array(edges, dtype=np.float64) for edges in row["edges"]),
            tuple(np.array(scores, dtype=np.float64) for scores in row["scores"]),
            np.array(row["intercept"], dtype=np.float64),
        )


def fit_additive(
    features_NF: NDArray[Any], levels: Sequence[int], *, seed: int = 0
) -> AdditiveModel:
    """Fit an explainable boosting machine, and take its tables."""
    found = tuple(sorted(set(levels)))
    if len(found) < 2:  # nothing to tell apart
        num_features = features_NF.shape[1]
        nothing, flat = np.zeros(0), np.zeros((1, len(found)))
        return AdditiveModel(found, (nothing,) * num_features, (flat,) * num_features, flat[0])
    return tables_of(fit_machine(features_NF, levels, seed=seed))


def fit_machine(features_NF: NDArray[Any], levels: Sequence[int], *, seed: int = 0) -> Any:
    """interpret-core's own object, without pairs of features: those could not be read off a table.

    One job: the data are small, and worker processes cost more than they bring.
    """
    from interpret.glassbox import ExplainableBoostingClassifier

    machine = ExplainableBoostingClassifier(
        feature_types=["continuous"] * features_NF.shape[1],
        max_bins=MAX_BINS,
        max_rounds=MAX_ROUNDS,
        interactions=0,
        n_jobs=1,
        random_state=seed % 2**31,
    )
    return machine.fit(features_NF, np.asarray(levels))


def tables_of(machine: Any) -> AdditiveModel:
    """The tables of a fitted machine: its first and last bin, for missing values, are left out."""
    levels = tuple(int(level) for level in machine.classes_)
    scores, intercept = [table[1:-1] for table in machine.term_scores_], machine.intercept_
    if len(levels) == 2:  # one logit, of the upper level
        scores = [np.stack([np.zeros_like(table), table], axis=1) for table in scores]
        intercept = np.array([0.0, float(intercept[0])])
    edges = (np.asarray(bins[0], dtype=np.float64) for bins in machine.bins_)
    tables = (np.asarray(table, dtype=np.float64) for table in scores)
    return AdditiveModel(levels, tuple(edges), tuple(tables), np.asarray(intercept, np.float64))
