"""Words in scripts with and without spaces."""

import pytest

from rewriting.words import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n ", []),
        ("I'm sad.  Really!", ["I'm", "sad.", "Really!"]),
        ("我很难过", ["我", "很", "难", "过"]),
        ("OK我懂 yes", ["OK", "我", "懂", "yes"]),
        ("정말 힘들어", ["정말", "힘들어"]),
        ("🥺🫂 ok", ["🥺🫂", "ok"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected
