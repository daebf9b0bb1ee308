"""Columns of three rows, and the plainest of rewards."""

from typing import Any

COLUMNS: dict[str, Any] = {
    "completions": ["a", "bbb", "cc"],
    "seeker_post": ["s", "s", "t"],
    "response_post": ["aaaa", "bb", "cc"],
}


def length(completions: list[str], **_: Any) -> list[float]:
    return [float(len(text)) for text in completions]


def gathering(sent: list[Any]) -> Any:
    def gather(own: Any) -> list[Any]:
        sent.append(own)
        return [own]

    return gather
