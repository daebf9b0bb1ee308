"""From what a reader says of a sentence under a post to the levels of empathy that it earns there.

A reader gives form, fit and need as logits (rewards/reading/reader.py). Two small logistic rules
per mechanism weigh form and fit: is there any, and is it strong. They are fitted on sentences that
the reader was not trained on: real ones in place, the same under other people's posts, and the
counterfactuals. So what has the form of empathy and does not fit earns none, what fits everybody
earns a weak level at the most, and an echo of the post earns nothing.

Legend: N sentences, F features, M mechanisms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from rewards.reading.echo import echoed
from rewards.reading.reader import Reading
from rewriting.exchange import MECHANISMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURES: Final = (
    "some",
    "strong",
    "specific_fit",
    "general_fit",
    "both",
    "specific_misfit",
    "echoed",
    "others",
)
MOST_FIT, MOST_FORM = 4.0, 6.0  # beyond these, more of it says no more


@dataclass(frozen=True, slots=True)
class Rule:
    """A logistic rule: weights of FEATURES, then the bias."""

    weights: tuple[float, ...]

    def __call__(self, features_NF: NDArray[Any]) -> NDArray[Any]:
        """[N]: probabilities."""
        logits_N = features_NF @ np.array(self.weights[:-1]) + self.weights[-1]
        probabilities_N: NDArray[Any] = 1 / (1 + np.exp(-np.clip(logits_N, -60, 60)))
        return probabilities_N

    @classmethod
    def fitted(
        cls, features_NF: NDArray[Any], labels_N: NDArray[Any], weights_N: NDArray[Any]
    ) -> Self:
        from sklearn.linear_model import LogisticRegression

        mean_F, spread_F = features_NF.mean(0), features_NF.std(0) + 1e-6
        model = LogisticRegression(C=0.3, max_iter=5000)
        model.fit((features_NF - mean_F) / spread_F, labels_N, sample_weight=weights_N)
        plain_F = model.coef_[0] / spread_F
        return cls((*plain_F.tolist(), float(model.intercept_[0] - plain_F @ mean_F)))


@dataclass(frozen=True, slots=True)
class Grounding:
    """The rules of all mechanisms, and the bars above which a level is called.

    need_bar: the logit of need below which a post calls for no empathy, whatever is said to it;
    need_slope: how sharply.
    """

    some: tuple[Rule, ...]
    strong: tuple[Rule, ...]
    some_bars: tuple[float, ...] = (0.5, 0.5, 0.5)
    strong_bars: tuple[float, ...] = (0.5, 0.5, 0.5)
    need_bar: float = 0.0
    need_slope: float = 1.0

    def probabilities(
        self, readings: Sequence[Reading], pairs: Sequence[tuple[str, str]]
    ) -> NDArray[Any]:
        """[N, M, 2]: of any at all, and of strong given some."""
        needs_N = np.array([one.need for one in readings])
        gate_N = 1 / (1 + np.exp(-np.clip(self.need_slope * (needs_N - self.need_bar), -60, 60)))
        found = np.zeros((len(readings), len(MECHANISMS), 2))
        for m in range(len(MECHANISMS)):
            features_NF = features(readings, pairs, m)
            found[:, m, 0] = self.some[m](features_NF) * gate_N
            found[:, m, 1] = self.strong[m](features_NF)
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            "some": [rule.weights for rule in self.some],
            "strong": [rule.weights for rule in self.strong],
            "some_bars": self.some_bars,
            "strong_bars": self.strong_bars,
            "need_bar": self.need_bar,
            "need_slope": self.need_slope,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        rules = {
            name: tuple(Rule(tuple(weights)) for weights in values[name])
            for name in ("some", "strong")
        }
        return cls(
            rules["some"],
            rules["strong"],
            tuple(values["some_bars"]),
            tuple(values["strong_bars"]),
            values["need_bar"],
            values["need_slope"],
        )


def features(
    readings: Sequence[Reading], pairs: Sequence[tuple[str, str]], mechanism: int
) -> NDArray[Any]:
    """[N, F]: what the rules of one mechanism weigh."""
    rows = [
        _row(reading, mechanism, echoed(*pair))
        for reading, pair in zip(readings, pairs, strict=True)
    ]
    return np.array(rows).reshape(len(rows), len(FEATURES))


def _row(reading: Reading, mechanism: int, echo: float) -> tuple[float, ...]:
    """Fit matters for what is said strongly, and hardly for "I'm sorry", which fits anybody: it is
    split by the probability of strong form. others: the largest logit of another mechanism, since
    a sentence is rarely two things at once."""
    strong = 1 / (1 + math.exp(-reading.strong[mechanism]))
    fit = min(max(reading.contrast, -MOST_FIT), MOST_FIT)
    some = min(max(reading.some[mechanism], -MOST_FORM), MOST_FORM)
    return (
        some,
        reading.strong[mechanism],
        strong * fit,
        (1 - strong) * fit,
        min(some, strong * fit + MOST_FIT / 2),
        strong * min(fit, 0.0),
        echo,
        max(logit for m, logit in enumerate(reading.some) if m != mechanism),
    )
