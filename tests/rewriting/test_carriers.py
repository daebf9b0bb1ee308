"""Carriers are found by rationales, and taking them out leaves the rest as it was."""

import pytest

from rewriting import Exchange, split_sentences
from rewriting.carriers import Carrier, carriers, overlap, suitable, without
from rewriting.exchange import Label


@pytest.mark.parametrize(
    ("rationale", "sentence", "share"),
    [
        ("I am so sorry", "I am so sorry", 1.0),
        ("what. I AM so\n sorry. no", "I am so sorry.", 1.0),
        ("sorry", "I am so sorry", 5 / 13),
        ("end. I am so", "I am so sorry", 7 / 13),
        ("", "I am", 0.0),
        ("I am", "", 0.0),
    ],
)
def test_how_much_of_a_sentence_a_rationale_covers(
    rationale: str, sentence: str, share: float
) -> None:
    assert overlap(rationale, sentence) == pytest.approx(share)


def test_half_a_sentence_makes_a_carrier() -> None:
    sorry = {"emotional_reactions": Label(1, ("I am so sorry",))}
    end = {"emotional_reactions": Label(1, ("go on",))}
    assert carriers(Exchange("a", "I am so sorry but. You have to go on.", labels=end)) == []
    assert carriers(Exchange("a", "Hm. I am so sorry, you.", labels=sorry)) == [
        Carrier(1, "I am so sorry, you.", "emotional_reactions", 1)
    ]


def test_a_level_of_0_has_no_carrier() -> None:
    labels = {"emotional_reactions": Label(0, ("I am so sorry.",))}
    assert carriers(Exchange("a", "I am so sorry.", labels=labels)) == []


@pytest.mark.parametrize(
    "text",
    ["Sorry.", "word " * 31, "See https://x.org for more", "ask in /r/help now", "f *this* now"],
)
def test_what_is_no_prose_of_a_usable_length(text: str) -> None:
    assert suitable("I am sorry", 3, 30)
    assert not suitable(text, 3, 30)


def test_what_is_left_keeps_its_white_space() -> None:
    sentences = split_sentences(" One is.\nTwo is.  Three is. ")
    assert str(without(sentences, {1})) == " One is.\nThree is. "
    assert str(without(sentences, {0})) == " Two is.  Three is. "
    assert str(without(sentences, {0, 2})) == " Two is.  "
    assert str(without(sentences, set())) == str(sentences)
