"""The share of repeated n-grams, as a cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.terms.repetition import Repetition
from rewriting.errors import UserError
from tests.rewards.fakes import ODD_TEXTS


@pytest.mark.parametrize(
    ("text", "n", "expected"),
    [
        ("I am so sorry that this happened.", 3, 0.0),
        ("no no no no", 3, -1 / 2),
        ("No no NO no", 1, -3 / 4),
        ("I am sorry I am sorry", 3, -1 / 4),
        ("I am sorry I am sorry", 2, -2 / 5),
        ("so sad", 3, 0.0),
        ("", 1, 0.0),
        ("难难难", 1, -2 / 3),
    ],
)
def test_shares_by_hand(text: str, n: int, expected: float) -> None:
    assert Repetition(n)(completions=[text]) == pytest.approx([expected])


def test_without_the_batch_other_rows_do_not_matter() -> None:
    rows = ["it is so hard", "it is so hard", "no no no no"]
    whole = Repetition()(completions=rows)
    assert whole == [0.0, 0.0, -0.5]
    assert [Repetition()(completions=[row])[0] for row in rows] == whole


def test_across_the_batch_by_hand() -> None:
    """Bigrams: of `this is hard` both are row 1's too; row 1 has two more, of which none is."""
    rows = ["This is hard", "this is hard for you", "Unlike that"]
    found = Repetition(2, across_batch=True)(completions=rows)
    assert found == pytest.approx([-1.0, -2 / 4, 0.0])
    backwards = Repetition(2, across_batch=True)(completions=rows[::-1])
    assert backwards == found[::-1]


def test_what_the_original_says_may_be_said_by_all() -> None:
    rows = ["Call your mother now. Poor you.", "Call your mother now. Poor you."]
    term = Repetition(2, across_batch=True)
    originals = ["Call your mother now.", "Call your mother now."]
    assert term(completions=rows, response_post=originals) == pytest.approx([-2 / 5, -2 / 5])
    assert term(completions=originals, response_post=originals) == [0.0, 0.0]


@given(st.lists(st.text("ab ", max_size=20), max_size=4), st.booleans())
def test_always_between_minus_1_and_0(rows: list[str], across_batch: bool) -> None:
    found = Repetition(2, across_batch=across_batch)(completions=rows)
    assert all(-1 <= value <= 0 for value in found)


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_are_finite(text: str) -> None:
    (found,) = Repetition()(completions=[text])
    assert -1 <= found <= 0


def test_n_is_1_or_more() -> None:
    with pytest.raises(UserError, match="not 0"):
        Repetition(0)
