"""`edit_size`: how much of the peer's own response was changed. Keeps edits small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewards.protocol import texts
from rewriting.runtime.cache import ScoreCache
from rewriting.words import words


class EditSize:
    """Minus the share of words that changed: the edit distance of the words of the original and
    the rewritten response, divided by the length of the longer.

    PARTNER (arXiv 2101.07714) wants few changes, so that the reply stays the peer's, and reports
    this as edit rate; its released code compares sets of characters instead.

    In: completions, response_post. Out: −1 (nothing kept) to 0 (unchanged, but for white space).
    """

    def __init__(self, *, name: str = "edit_size") -> None:
        self.__name__ = name
        self._shares = ScoreCache(_changed_shares)

    def __call__(
        self, *, completions: Sequence[Any], response_post: Sequence[str], **_: Any
    ) -> list[float]:
        return self._shares(list(zip(response_post, texts(completions), strict=True)))


def _changed_shares(pairs: list[tuple[str, str]]) -> list[float]:
    from rapidfuzz.distance import Levenshtein

    return [0.0 - Levenshtein.normalized_distance(words(a), words(b)) for a, b in pairs]
