"""From what single sentences show to what a response shows: a mechanism has its best sentence.

So a question raises nothing but what that sentence itself shows, a third question adds nothing to a
second, and the same kindness twice counts once.

Legend: T sentences of a response, M mechanisms.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rewards.identifiers.assessment import Assessment, Judgement
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.statistics.classification import macro_f1

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOME_BARS: Final = (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7)
STRONG_BARS: Final = (0.3, 0.4, 0.5, 0.6, 0.7)
Bars = tuple[tuple[float, ...], tuple[float, ...]]
"""For each mechanism the probability from which on there is some of it, and is it strong."""
Shown = tuple[Sequence[str], Any, bool]
"""The sentences of a response, for each of them and each mechanism the probabilities of some and of
strong, [T, M, 2], and whether the post calls for empathy."""


def assessment_of(shown: Shown, bars: Bars, *, rationales: bool = True) -> Assessment:
    """The assessment of a response by its sentences."""
    sentences, own_TM2, needed = shown
    judgements = {}
    for m, mechanism in enumerate(MECHANISMS):
        if not len(sentences):
            judgements[mechanism] = Judgement(0, (1.0, 0.0, 0.0))
            continue
        some_T, strong_T = own_TM2[:, m, 0], own_TM2[:, m, 1]
        best = int(np.argmax(some_T * (1 + strong_T)))
        some, strong = float(some_T[best]), float(strong_T[best])
        levels_T = levels(some_T, strong_T, bars[0][m], bars[1][m]) * needed
        level = int(levels_T.max())
        texts = tuple(sentences[t] for t in np.flatnonzero(levels_T > 0).tolist()) if level else ()
        probabilities = (1 - some, some * (1 - strong), some * strong)
        judgements[mechanism] = Judgement(level, probabilities, texts if rationales else ())
    return Assessment(judgements)


def levels(
    some_T: NDArray[Any], strong_T: NDArray[Any], some_bar: float, strong_bar: float
) -> NDArray[Any]:
    """[T]: the called level of each sentence."""
    called_T: NDArray[Any] = (some_T > some_bar) * (1 + (strong_T > strong_bar).astype(int))
    return called_T


def best_bars(shown: Sequence[Shown], exchanges: Sequence[Exchange]) -> Bars:
    """The bars that give the best macro-F1 of levels on labelled exchanges."""
    best = []
    for m, mechanism in enumerate(MECHANISMS):
        truth = [exchange.labels[mechanism].level for exchange in exchanges]
        scores: dict[tuple[float, float], float] = {}
        for some, strong in itertools.product(SOME_BARS, STRONG_BARS):
            called = [
                int(max(levels(own[:, m, 0], own[:, m, 1], some, strong), default=0)) * needed
                for _, own, needed in shown
            ]
            scores[some, strong] = macro_f1(truth, called)
        best.append(max(scores, key=lambda bars: scores[bars]))
    return tuple(some for some, _ in best), tuple(strong for _, strong in best)
