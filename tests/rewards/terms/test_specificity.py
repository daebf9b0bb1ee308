"""Cosine similarity to the seeker post, with an encoder of three known words."""

from typing import Any

import pytest

from rewards.terms.specificity import Specificity
from tests.rewards.fakes import ODD_TEXTS, FakeEncoder

COLUMNS: dict[str, Any] = {
    "completions": ["An exam in the rain.", "My dog.", "The exam, the exam."],
    "seeker_post": ["The exam.", "The exam.", "Rain."],
}


def test_cosines_by_hand() -> None:
    assert Specificity(FakeEncoder())(**COLUMNS) == pytest.approx([0.5**0.5, 0.0, 0.0])


def test_the_new_sentence_counts_where_there_is_one() -> None:
    sentences = ["Which exam?", None, "  "]
    found = Specificity(FakeEncoder())(**COLUMNS, sentence=sentences)
    assert found == pytest.approx([1.0, 0.0, 0.0])


def test_texts_are_encoded_once() -> None:
    encoder = FakeEncoder()
    term = Specificity(encoder)
    term(**COLUMNS)
    term(**(COLUMNS | {"completions": ["New.", "My dog.", "My dog."]}))
    texts = ["An exam in the rain.", "My dog.", "Rain.", "The exam, the exam.", "The exam."]
    assert sorted(encoder.asked[:-1]) == [[text] for text in texts]
    assert encoder.asked[-1] == ["New."]


def test_texts_of_similar_length_are_encoded_together() -> None:
    encoder = FakeEncoder()
    assert Specificity(encoder, batch_size=3)(**COLUMNS) == Specificity(FakeEncoder())(**COLUMNS)
    assert encoder.asked == [
        ["Rain.", "My dog.", "The exam."],
        ["The exam, the exam.", "An exam in the rain."],
    ]


def test_batch_size_and_order_do_not_matter() -> None:
    whole = Specificity(FakeEncoder())(**COLUMNS)
    for order in ([2, 0, 1], [1], [0, 2]):
        part = {name: [values[i] for i in order] for name, values in COLUMNS.items()}
        assert Specificity(FakeEncoder())(**part) == [whole[i] for i in order]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_blank_texts_and_vectors_of_zeros_score_0(text: str) -> None:
    term = Specificity(FakeEncoder())
    assert term(completions=[text], seeker_post=["The exam."]) == [0.0]
    assert term(completions=["The exam."], seeker_post=[text]) == [0.0]


@pytest.mark.integration
def test_the_real_encoder_knows_what_a_reply_is_about() -> None:
    from rewriting.runtime.models.named import load_sentence_encoder

    encoder = load_sentence_encoder("minilm-l6")
    seeker = "I failed my driving test for the third time."
    replies = [
        "Failing the driving test again must sting.",
        "This must have been really hard for you.",
        *ODD_TEXTS,
    ]
    found = Specificity(encoder)(completions=replies, seeker_post=[seeker] * len(replies))
    assert found[0] > 0.6 > found[1] > found[2] == 0.0
    assert all(-1 <= value <= 1 for value in found)
    backwards = Specificity(encoder)(completions=replies[::-1], seeker_post=[seeker] * len(replies))
    assert backwards[::-1] == found
    alone = [Specificity(encoder)(completions=[r], seeker_post=[seeker])[0] for r in replies]
    assert alone == found
