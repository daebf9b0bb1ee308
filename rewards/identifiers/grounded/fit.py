"""Fitting the rules of a grounded identifier, on sentences that its reader was not trained on.

Rows are sentences under posts with the levels they earn there: sentences of labelled responses in
place; the strong ones of them under the post of somebody else, where they earn nothing; and every
sentence of the counterfactuals.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rewards.identifiers.by_sentence import best_bars
from rewards.identifiers.grounded.grounding import Grounding, Rule, features
from rewards.reading.blocks import KIND_LEVELS, Levels, labelled_answers, sentences_by_kind
from rewards.reading.reader import SentenceReader
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange

if TYPE_CHECKING:
    from rewards.identifiers.grounded.identifier import GroundedIdentifier

NOTHING: Final[Levels] = (0, 0, 0)
MOVED_WEIGHT: Final = 0.3
"""Of a real sentence under another's post: about what share of an agent's sentences would be so."""


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence under a post, the levels it earns there, and how much the row counts."""

    post: str
    sentence: str
    levels: Levels
    weight: float = 1.0


def rows_of(
    labelled: Sequence[Exchange], counterfactuals: Sequence[Exchange], seed: int = 0
) -> list[Row]:
    """The rows of labelled exchanges and of counterfactuals; each source weighs alike."""
    generator = random.Random(seed)
    answers = labelled_answers(labelled)
    real = [Row(one.post, one.sentence, one.levels or NOTHING) for one in answers]
    posts = list(dict.fromkeys(row.post for row in real))
    for row in [row for row in real if max(row.levels) == 2]:
        other = generator.choice([post for post in posts if post != row.post])
        real.append(Row(other, row.sentence, NOTHING, MOVED_WEIGHT))
    ours = [
        Row(exchange.seeker_post, text, KIND_LEVELS.get(kind, NOTHING))
        for exchange in counterfactuals
        for kind, text in sentences_by_kind(exchange).items()
    ]
    if len(posts) < 2 or len(counterfactuals) < 2:
        raise UserError(
            "the rules for levels need labelled exchanges and counterfactuals of two posts."
        )
    strong = [row for row in ours if max(row.levels) == 2]
    for row in strong:
        other = generator.choice(
            [e.seeker_post for e in counterfactuals if e.seeker_post != row.post]
        )
        ours.append(Row(other, row.sentence, NOTHING, MOVED_WEIGHT))
    share = len(real) / max(1, len(ours))
    return real + [replace(row, weight=share * row.weight) for row in ours]


def fitted_grounding(
    reader: SentenceReader, rows: Sequence[Row], support_posts: Sequence[str], passing: float
) -> Grounding:
    """The rules that make the rows likeliest. passing: the share of posts of people in trouble
    that pass the bar of need."""
    pairs = [(row.post, row.sentence) for row in rows]
    readings = reader.read(pairs, alone=True)
    levels_NM = np.array([row.levels for row in rows])
    weights_N = np.array([row.weight for row in rows])
    some, strong = [], []
    for m in range(len(MECHANISMS)):
        features_NF = features(readings, pairs, m)
        has_N = levels_NM[:, m] > 0
        some.append(Rule.fitted(features_NF, has_N, weights_N))
        strong.append(Rule.fitted(features_NF[has_N], levels_NM[has_N, m] > 1, weights_N[has_N]))
    needs = [one.need for one in reader.read([(post, "") for post in support_posts], alone=True)]
    bar = float(np.quantile(needs, 1 - passing))
    return Grounding(tuple(some), tuple(strong), need_bar=bar)


def with_bars(identifier: GroundedIdentifier, exchanges: Sequence[Exchange]) -> Grounding:
    """The grounding with the bars that give the best macro-F1 of levels on labelled exchanges."""
    shown = identifier.readings(
        [exchange.seeker_post for exchange in exchanges],
        [exchange.response_post for exchange in exchanges],
    )
    some, strong = best_bars(shown, exchanges)
    return replace(identifier.grounding, some_bars=some, strong_bars=strong)
