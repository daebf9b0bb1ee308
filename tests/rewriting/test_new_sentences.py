"""Which sentences of a rewritten response count as new."""

import pytest

from rewriting.new_sentences import new_flags, new_sentences

RESPONSE = "Ann came. Bob left."


@pytest.mark.parametrize(
    ("completion", "sentence", "expected"),
    [
        # Without the column: what the original response does not have.
        ("Ann came. New. Bob left.", None, ["New."]),
        ("Ann came. Bob left.", None, []),
        ("All is new. And this.", None, ["All is new.", "And this."]),
        ("", None, []),
        # A sentence said twice is new once.
        ("Ann came. Ann came. Bob left.", None, ["Ann came."]),
        # Case, white space and the last full stop do not make a sentence new; a word does.
        ("ann  came! Bob left", None, []),
        ("Ann came here. Bob left.", None, ["Ann came here."]),
        # A sentence that is gone leaves nothing new behind.
        ("Ann came.", None, []),
        # The column wins over the comparison: this Bob is the new one.
        ("Ann came. Bob left.", "Bob left.", ["Bob left."]),
        # What joining closed with a full stop is still the sentence of the column.
        ("Ann came. New one. Bob left.", "New one", ["New one."]),
        # Several sentences in the column; one of them did not stay.
        ("Ann came. First. Bob left.", "First. Second.", ["First."]),
        # A sentence of the column counts as often as it stands there.
        ("New. New.", "New.", ["New."]),
        ("New. New.", "New. New.", ["New.", "New."]),
        # The column says what is new, so another new sentence is none of it.
        ("Ann came. Other.", "New.", []),
        # A blank column says nothing.
        ("Ann came. New.", " \n", ["New."]),
    ],
)
def test_what_is_new(completion: str, sentence: str | None, expected: list[str]) -> None:
    assert new_sentences(completion, RESPONSE, sentence) == expected


def test_flags_keep_the_places() -> None:
    assert new_flags(["New.", "Ann came.", "Newer."], RESPONSE, None) == [True, False, True]
    assert new_flags(["New.", "Ann came.", "Newer."], RESPONSE, "newer") == [False, False, True]
    assert new_flags([], RESPONSE, None) == []
