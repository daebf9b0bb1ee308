"""Words in scripts with and without spaces."""

import pytest

from rewriting.words import counted, words


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


def test_counted() -> None:
    assert [counted(n, "process") for n in (0, 1, 2)] == ["0 processes", "1 process", "2 processes"]
    assert counted(1024, "row") == "1,024 rows"
    assert counted(2, "reply") == "2 replies"
    assert counted(2, "crisis") == "2 crises"
