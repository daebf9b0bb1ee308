"""Figures of texts by hand."""

import pytest

from policies.training.figures import distinct, is_question, share_of_opening


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [("Why?", True), ("Why?!", True), ('"Why?"', True), ("Why? Oh.", False), ("Why.", False)],
)
def test_questions(sentence: str, expected: bool) -> None:
    assert is_question(sentence) is expected


def test_openings() -> None:
    asked = ["How do you feel?", "how do YOU, then?", "How did it go?", "I see."]
    assert share_of_opening(asked) == 0.5
    assert share_of_opening(["Oh.", "oh"]) == 1
    assert share_of_opening(["Oh."]) is None


def test_distinct() -> None:
    assert distinct(["a", "b", "c"]) == 1
    assert distinct(["a", "A ", "a"]) == 0
    assert distinct(["a"]) is None
