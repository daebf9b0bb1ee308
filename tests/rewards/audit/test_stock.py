"""The lists of stock sentences, and the rule that tells a stock sentence by its words alone."""

from pathlib import Path

import pytest

from rewards.audit.stock import NONSENSE, STOCK, is_stock, plain_words, read_sentences
from rewriting.errors import UserError

KNOWN = [*read_sentences(STOCK), "I'm sorry.", "Why?"]


@pytest.mark.parametrize(
    "sentence",
    [
        "How do you feel about it?",
        "HOW DO YOU FEEL ABOUT THAT",
        "I’m so sorry to hear that.",
        "I'm really sorry that you're going through this.",
        "I get you.",
        "Oh no, I'm so sorry!!",
    ],
)
def test_words_that_fit_everybody_are_stock(sentence: str) -> None:
    assert is_stock(sentence, KNOWN)


@pytest.mark.parametrize(
    "sentence",
    [
        "I'm sorry that Rex died.",
        "I'm so sorry about your exam.",
        "Why did she sell the freezer?",
        "It must be exhausting to hold all of that together on your own.",
        # All words are common and "Why?" is in it, but it is far longer than that.
        "Why would they tell you to go over there and not with her?",
        "Divorce hurts.",
        # Stock to a reader; seven words and a ratio of 76 leave it in doubt.
        "That must be so hard for you.",
        "",
    ],
)
def test_in_doubt_a_sentence_is_not_stock(sentence: str) -> None:
    assert not is_stock(sentence, KNOWN)


def test_a_known_sentence_is_stock_whatever_its_words() -> None:
    assert is_stock("Bicycles are lovely things, my friend.", ["Bicycles are lovely, my friend!"])
    assert not is_stock("Bicycles are lovely things, my friend.", KNOWN)


def test_punctuation_and_case_are_off() -> None:
    assert plain_words("I’m SO-SO sorry, don't!") == ["im", "so", "so", "sorry", "dont"]


def test_lists_have_comments_and_no_doubles(tmp_path: Path) -> None:
    file = tmp_path / "stock.txt"
    file.write_text("# mine\n\n  What now? \nSo sad.\nWhat now?\n", encoding="utf-8")
    assert read_sentences(file) == ["What now?", "So sad."]


def test_the_shipped_lists() -> None:
    assert len(read_sentences(STOCK)) == 12
    assert read_sentences(NONSENSE)[0] == "What is your neighbour's bicycle pump?"


def test_an_empty_list_and_a_missing_one_are_named(tmp_path: Path) -> None:
    file = tmp_path / "empty.txt"
    file.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"empty\.txt holds no sentence"):
        read_sentences(file)
    with pytest.raises(UserError, match=r"none\.txt: No such file"):
        read_sentences(tmp_path / "none.txt")
    file.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(UserError, match="not UTF-8"):
        read_sentences(file)
