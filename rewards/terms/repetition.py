"""`repetition`: a response that says the same thing again and again. The degeneration watchdog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rewards.protocol import texts
from rewriting.errors import UserError
from rewriting.words import words

Gram = tuple[str, ...]


class Repetition:
    """Minus the share of a completion's n-grams that were there before.

    A policy that finds a phrase the other terms like repeats it: in one response, or, with
    `across_batch`, in all of them, which is how PARTNER's generic kind sentence (arXiv 2101.07714)
    kills diversity. Across the batch, n-grams of the row's own original response are not held
    against it: samples of the same response share them by right.

    In: completions; response_post with `across_batch`. Out: −1 to 0 (no n-gram repeated, or fewer
    words than n). With `across_batch` alone, a score depends on the other rows of the batch.
    """

    def __init__(self, n: int = 3, *, across_batch: bool = False, name: str = "repetition") -> None:
        if n < 1:
            raise UserError(f"repetition counts n-grams of 1 word or more, not {n}.")
        self.__name__ = name
        self.n = n
        self.across_batch = across_batch
        self.compares_rows = across_batch

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        response_post: Sequence[str] | None = None,
        **_: Any,
    ) -> list[float]:
        rows = [self._grams(text) for text in texts(completions)]
        if not self.across_batch:
            return [_score(grams, set()) for grams in rows]
        originals = response_post if response_post is not None else [""] * len(rows)
        used_by = Counter(gram for grams in rows for gram in set(grams))
        return [
            _score(grams, {g for g in grams if used_by[g] > 1} - set(self._grams(original)))
            for grams, original in zip(rows, originals, strict=True)
        ]

    def _grams(self, text: str) -> list[Gram]:
        found = words(text.casefold())
        return list(zip(*(found[start:] for start in range(self.n)), strict=False))


def _score(grams: list[Gram], used_elsewhere: set[Gram]) -> float:
    """Minus the share of n-grams that repeat an earlier one or one of another row."""
    if not grams:
        return 0.0
    new = sum(gram not in used_elsewhere for gram in set(grams))
    return new / len(grams) - 1.0
