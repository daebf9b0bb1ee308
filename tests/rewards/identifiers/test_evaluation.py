"""What `evaluate.py identifier` prints, by hand."""

from collections.abc import Sequence

import pytest

from rewards.identifiers.assessment import Assessment, Judgement
from rewards.identifiers.evaluation import evaluate, word_mask
from rewriting.exchange import MECHANISMS, Label
from tests.rewards.identifiers.hand_made import labelled

SURE = (1.0, 0.0, 0.0)


class Fixed:
    """Says what it was given, in order."""

    name = "fixed"

    def __init__(self, *judgements: Judgement) -> None:
        self.judgements = judgements

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        return [Assessment(dict.fromkeys(MECHANISMS, judgement)) for judgement in self.judgements]


def test_percentages_by_hand() -> None:
    exchanges = [
        labelled("So sorry. Why is that?", explorations=Label(1, ("Why is that?",))),
        labelled("Try yoga.", explorations=Label(0)),
        labelled("Who? And what for?", explorations=Label(2, ("Who?", "what for?"))),
        labelled("Hi."),
    ]
    calls = Fixed(
        Judgement(1, SURE, ("sorry.", "Why is that?")),  # words 2 · 3 / (3 + 4), one run of 4 on 3
        Judgement(0, SURE),
        Judgement(1, SURE, ("Who?",)),  # words 2 · 1 / (3 + 1), runs 1 of 1 and 1 of 2
        Judgement(2, SURE),  # not labelled: not counted
    )
    assert evaluate(calls, exchanges) == {
        "explorations": {
            "accuracy": pytest.approx(100 * 2 / 3),
            "macro_f1": pytest.approx(100 * (1 + 2 / 3 + 0) / 3),
            "token_f1": pytest.approx(100 * (6 / 7 + 1 + 1 / 2) / 3),
            "iou_f1": pytest.approx(100 * (1 + 1 + 2 / 3) / 3),
            "n": 3,
        }
    }


def test_nothing_labelled_gives_no_figures() -> None:
    assert evaluate(Fixed(Judgement(0, SURE)), [labelled("Hi.")]) == {}


def test_words_that_a_rationale_touches() -> None:
    assert word_mask(["so\nsorry"], "I'm  so sorry, friend") == [False, True, True, False]
    assert word_mask([], "a b") == [False, False]
    assert word_mask(["elsewhere entirely"], "a b") == [False, False]
    assert word_mask(["a"], "") == []
