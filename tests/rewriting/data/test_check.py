"""The summary counts what is there."""

from rewriting.data.check import Summary, summarise
from rewriting.exchange import Exchange, Label


def test_counts() -> None:
    exchanges = [
        Exchange("one two", "three", labels={"explorations": Label(1, ("three", "gone"))}),
        Exchange("one two", "three", labels={"explorations": Label(0)}),
        Exchange("one", "a b c", history=("x",)),
    ]
    counts = summarise(exchanges, Summary()).json()
    assert counts == {
        "rows": 3,
        "seekers": 2,
        "duplicates": 1,
        "with_history": 1,
        "bad_rows": 0,
        "levels": {"explorations": [1, 1, 0]},
        "rationales": {"explorations": 2},
        "rationales_not_in_response": {"explorations": 1},
        "seeker_words": {"min": 1, "median": 2, "p95": 2, "max": 2},
        "response_words": {"min": 1, "median": 1, "p95": 3, "max": 3},
    }
