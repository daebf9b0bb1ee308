"""How well an identifier finds levels and rationales, beside the labels of exchanges."""

from __future__ import annotations

from collections.abc import Sequence

from rewards.identifiers import metrics
from rewards.identifiers.assessment import Identifier, Judgement
from rewards.identifiers.rationales import align_all, label_tokens, normalise, word_spans
from rewriting.exchange import MECHANISMS, Exchange, Label
from rewriting.statistics.classification import accuracy, macro_f1

MEASURES = ("accuracy", "macro_f1", "token_f1", "iou_f1")


def evaluate(identifier: Identifier, exchanges: Sequence[Exchange]) -> dict[str, dict[str, float]]:
    """Per mechanism accuracy, macro_f1, token_f1 and iou_f1 as percentages, and n, the rows.

    A mechanism is measured on the exchanges that are labelled for it, and left out where there are
    none. Rationales are compared as sets of words, whatever the tokenizer; an example without a
    rationale, and none predicted, counts 1, as the papers count.
    """
    assessments = identifier.assess(
        [exchange.seeker_post for exchange in exchanges],
        [exchange.response_post for exchange in exchanges],
    )
    found = {}
    for mechanism in MECHANISMS:
        rows = [
            (exchange.response_post, exchange.labels[mechanism], assessment.judgements[mechanism])
            for exchange, assessment in zip(exchanges, assessments, strict=True)
            if mechanism in exchange.labels
        ]
        if rows:
            found[mechanism] = scores_of(rows)
    return found


def scores_of(rows: Sequence[tuple[str, Label, Judgement]]) -> dict[str, float]:
    """The measures of one mechanism: rows of response post, label and judgement."""
    gold = [label.level for _, label, _ in rows]
    called = [judgement.level for _, _, judgement in rows]
    gold_words = [word_mask(label.rationales, post) for post, label, _ in rows]
    called_words = [word_mask(judgement.rationales, post) for post, _, judgement in rows]
    return {
        "accuracy": 100 * accuracy(gold, called),
        "macro_f1": 100 * macro_f1(gold, called),
        "token_f1": 100 * metrics.token_f1(gold_words, called_words),
        "iou_f1": 100 * metrics.iou_f1(gold_words, called_words),
        "n": len(rows),
    }


def word_mask(rationales: Sequence[str], response_post: str) -> list[bool]:
    """Which words of the response a rationale touches. A piece that stands in the response twice
    is taken where it stands first; one that cannot be found in it marks nothing."""
    text = normalise(response_post)
    spans = align_all([normalise(piece) for piece in rationales], text)
    return [label == 1 for label in label_tokens(word_spans(text), spans)]
