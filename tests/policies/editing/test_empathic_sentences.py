"""Which sentences carry the empathy that a policy may learn to say."""

import pytest

from policies.editing.empathic_sentences import (
    first_sentence,
    tells_own_story,
    to_be_learnt,
    weak_sentences,
)
from rewriting.carriers import carriers
from tests.policies.editing.labelled import SORRY, STRONG, WEAK


def test_the_first_carrier_of_each_strong_mechanism_is_learnt() -> None:
    assert [c.text for c in to_be_learnt(carriers(STRONG))] == [
        "I am so sorry for you.",
        "This must hurt a lot.",
    ]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("I am sorry... it gets better.", "I am sorry..."),
        ("Oh no!  You poor thing.", "Oh no!"),
        ('He said "no." Then left.', 'He said "no."'),
        ("So sad", "So sad"),
        ("", ""),
    ],
)
def test_one_sentence_is_learnt(text: str, first: str) -> None:
    assert first_sentence(text) == first


def test_weak_sentences_are_prose_without_questions() -> None:
    assert weak_sentences([WEAK, SORRY, WEAK], 3, 30) == ["Just go to bed early.", "Go to bed."]


@pytest.mark.parametrize(
    "sentence",
    [
        "I am so sorry for you.",
        "I hope you feel better.",
        "I can totally relate.",
        "This must hurt.",
        "Let me know if I can help, I'm here for you.",
        "I understand how you feel.",
    ],
)
def test_speaking_to_the_seeker_is_no_story(sentence: str) -> None:
    assert not tells_own_story(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "I was there last year.",
        "My mother died too.",
        "Same here.",
        "I have no friends.",
        "I know how you feel, my life is like that.",
    ],
)
def test_an_own_life_is_a_story(sentence: str) -> None:
    assert tells_own_story(sentence)
