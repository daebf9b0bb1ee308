"""Splitting gives back the text exactly; joining reads naturally."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriting.edits import Edit, apply_edits
from rewriting.sentences import Sentences, split_sentences

PIECES = [
    "ok",
    "I see",
    ".",
    "...",
    "!!",
    "?",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "😊",
    ":(",
    "- ",
    "1. ",
    "e.g.",
    "Dr. ",
    "https://a.b/c.d?e=f",
    "'",
    "“no.”",
    '"',
    "(",
    ")",
    "…",
    "né",
    "∯",
    "\u2028",
    "U.S.",
    "a.m.",
    "*",
    "你好。",
    "lol",
]
MESSY = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
TEXTS = st.one_of(st.text(max_size=120), MESSY)


@given(TEXTS)
def test_joining_gives_back_the_text(text: str) -> None:
    assert str(split_sentences(text)) == text


@given(TEXTS)
def test_sentences_are_stripped_and_gaps_are_white_space(text: str) -> None:
    sentences = split_sentences(text)
    assert all(sentence and sentence == sentence.strip() for sentence in sentences.texts)
    assert all(not gap.strip() for gap in sentences.gaps)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        (" \n ", ()),
        ("thats rough", ("thats rough",)),
        ("im sorry!! that sucks", ("im sorry!!", "that sucks")),
        ("wow!!!! no way??", ("wow!!!!", "no way??")),
        ("i feel bad. it sucks. you know", ("i feel bad.", "it sucks.", "you know")),
        ("Dr. Smith said hi. ok? lol", ("Dr. Smith said hi.", "ok?", "lol")),
        ("See https://a.b/c.d?e=f. It helps", ("See https://a.b/c.d?e=f.", "It helps")),
        ('"Don\'t go." He left.', ('"Don\'t go."', "He left.")),
        ("Try this:\n- sleep\n- eat", ("Try this:", "- sleep", "- eat")),
        ("It helps, e.g. with sleep. Try", ("It helps, e.g. with sleep.", "Try")),
        ("so sorry 😢\nhugs", ("so sorry 😢", "hugs")),
        ("What?! No.", ("What?!", "No.")),
    ],
)
def test_splitting_messy_text(text: str, expected: tuple[str, ...]) -> None:
    assert split_sentences(text).texts == expected


@pytest.mark.parametrize(
    ("text", "edit", "expected"),
    [
        ("Good luck.", Edit.insert(0, "I'm sorry."), "I'm sorry. Good luck."),
        ("Good luck.", Edit.insert(1, "I'm sorry."), "Good luck. I'm sorry."),
        ("thats rough", Edit.insert(1, "I'm sorry."), "thats rough. I'm sorry."),
        ("thats rough", Edit.insert(0, "I'm sorry"), "I'm sorry. thats rough"),
        ("wow 😊", Edit.insert(1, "I'm glad!"), "wow 😊 I'm glad!"),
        ("wow ❤️", Edit.insert(1, "I'm glad!"), "wow ❤️ I'm glad!"),
        ("love you <3", Edit.insert(1, "Yes!"), "love you <3 Yes!"),
        (" - sleep\n - eat", Edit.insert(0, "Hm."), " Hm.\n - sleep\n - eat"),
        ('He said "no"', Edit.insert(1, "Why?"), 'He said "no". Why?'),
        ('He said "no."', Edit.insert(1, "Why?"), 'He said "no." Why?'),
        ("See https://a.b/c", Edit.insert(1, "Why?"), "See https://a.b/c Why?"),
        ("A one.\n\nB two.", Edit.insert(1, "Hm."), "A one.\n\nHm. B two."),
        ("A one.\n\nB two.", Edit.insert(2, "Hm."), "A one.\n\nB two. Hm."),
        ("Try:\n- sleep\n- eat", Edit.insert(1, "Hm."), "Try:\nHm.\n- sleep\n- eat"),
        ("Try:\n- sleep\n- eat", Edit.insert(3, "Hm."), "Try:\n- sleep\n- eat\nHm."),
        ("- sleep", Edit.insert(0, "Hm."), "Hm.\n- sleep"),
        ("Try:\n- sleep\n- eat", Edit.replace(1, "rest"), "Try:\n- rest\n- eat"),
        ("One. Two. Three.", Edit.replace(1, "Deux"), "One. Deux. Three."),
        ("One.\nTwo", Edit.replace(0, "Un"), "Un\nTwo"),
        ("One. Two", Edit.replace(1, "Deux"), "One. Deux"),
        ("", Edit.insert(0, "Hello."), "Hello."),
        ("  Hi.  \n", Edit.insert(1, "You?"), "  Hi. You?  \n"),
        ("A,\nB", Edit.insert(1, "C."), "A,\nC. B"),
    ],
)
def test_joining_reads_naturally(text: str, edit: Edit, expected: str) -> None:
    assert apply_edits(text, [edit]) == expected


def test_gaps_and_sentences_must_match() -> None:
    with pytest.raises(ValueError, match="1 sentences need 2 gaps"):
        Sentences(("a",), ("",))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It was a bad day. She said no! Did you ask Dr. Smith? " * 200, 600),
        ("word " * 3000, 1),
        ("a" * 10_000, 1),
        ("so on and on, and then some more of it; " * 500 + "Yes. No way.", 2),
    ],
)
def test_a_very_long_line_is_split_in_blocks(text: str, count: int) -> None:
    sentences = split_sentences(text)
    assert str(sentences) == text
    assert len(sentences) == count
