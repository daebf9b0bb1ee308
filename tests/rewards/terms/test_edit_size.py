"""The share of words that changed, as a cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.terms.edit_size import EditSize
from tests.rewards.fakes import ODD_TEXTS


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Call your mother today.", "Call your mother today.", 0.0),
        ("Call your mother today.", "Call  your\nmother today. ", 0.0),
        ("Call your mother today.", "Call your father today.", -1 / 4),
        ("Call your mother.", "I am sorry. Call your mother.", -3 / 6),
        ("I am sorry. Call your mother.", "Call your mother.", -3 / 6),
        ("Call your mother.", "That hurts so much.", -1.0),
        ("", "That hurts.", -1.0),
        ("That hurts.", "", -1.0),
        ("", " ", 0.0),
        ("我很难过", "我很生气", -2 / 4),
    ],
)
def test_shares_by_hand(before: str, after: str, expected: float) -> None:
    found = EditSize()(completions=[after], response_post=[before])
    assert found == pytest.approx([expected])


@given(st.text(max_size=40), st.text(max_size=40))
def test_always_between_minus_1_and_0(before: str, after: str) -> None:
    (found,) = EditSize()(completions=[after], response_post=[before])
    assert -1 <= found <= 0


def test_batch_size_and_order_do_not_matter() -> None:
    before, after = ["a b", "c d e", "f"], ["a x", "c d e", "g h"]
    whole = EditSize()(completions=after, response_post=before)
    term = EditSize()
    for row in (2, 0, 1):
        assert term(completions=[after[row]], response_post=[before[row]]) == [whole[row]]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_an_unchanged_odd_text_costs_nothing(text: str) -> None:
    assert EditSize()(completions=[text], response_post=[text]) == [0.0]
