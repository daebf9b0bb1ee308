"""The bank: general sentences under the posts they fit, and the nearest of them."""

import pytest

from policies.choosing.bank import Bank, fitting_sentences
from tests.policies.choosing.tiny import ROWS, Letters, tiny_bank


def test_the_bundled_bank_holds_general_sentences_under_the_posts_they_fit() -> None:
    bank = list(fitting_sentences())
    assert len({one.sentence for one in bank}) > 2000
    assert all(one.sentence.strip() and one.post.strip() for one in bank)


def test_equal_sentences_have_one_number() -> None:
    assert tiny_bank().sentences == [
        "That was so close.",
        "What was it like?",
        "I miss him with you.",
        "That is a quiet kind of hurt.",
    ]


def test_the_sentences_of_the_most_similar_posts_come_first() -> None:
    bank = tiny_bank()
    (near,) = bank.nearest(["My dog dies."], 3)
    assert [bank.sentences[one.number] for one in near[:2]] == [
        "I miss him with you.",
        "That was so close.",
    ]
    assert len(near) == 3
    assert near[0].cosine == near[1].cosine > near[2].cosine


def test_what_was_said_to_the_very_post_is_left_out() -> None:
    """But for what was said to another post too."""
    bank = tiny_bank()
    (near,) = bank.nearest(["  my DOG died. "], 9)
    said = [bank.sentences[one.number] for one in near]
    assert "I miss him with you." not in said
    assert set(said) == set(bank.sentences) - {"I miss him with you."}


def test_posts_are_encoded_once() -> None:
    encoder = Letters()
    bank = Bank(encoder, ROWS)
    assert bank.nearest(["A", "B", "A"], 2) == bank.nearest(["A", "B", "A"], 2)
    assert len(encoder.asked) == 3 + 2  # the posts of the bank, and those that were asked about
    assert bank.nearest([], 2) == []


@pytest.mark.parametrize("count", [1, 2, 4, 99])
def test_no_more_than_asked_for(count: int) -> None:
    (near,) = tiny_bank().nearest(["Hello"], count)
    assert len({one.number for one in near}) == len(near) == min(count, 4)
