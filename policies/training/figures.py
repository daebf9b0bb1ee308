"""Figures that both algorithms log, from plain numbers and texts.

Sums are exact (`math.fsum`), so that the order of rows, and who computed them, does not matter.
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

OPENING: Final = 3
"""Words that make the opening of a sentence."""
QUESTION: Final = re.compile(r"[?？]\W*$")
WORD: Final = re.compile(r"[\w']+")


def rewards_summary(rows: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The mean of every term, and of every part of one, over the rows that it applies to."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {f"rewards/{name}": mean([row.get(name) for row in rows]) for name in names}


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def deviation(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.pstdev(known) if known else None


def distinct(sentences: Sequence[str]) -> float | None:
    """How different sentences are: 1 where all differ, 0 where all are one; None for fewer than 2.

    Case and white space do not count.
    """
    if len(sentences) < 2:
        return None
    different = {" ".join(sentence.casefold().split()) for sentence in sentences}
    return (len(different) - 1) / (len(sentences) - 1)


def is_question(sentence: str) -> bool:
    """Whether it ends with a question mark, whatever quotation marks or emojis come after it."""
    return QUESTION.search(sentence) is not None


def share_of_opening(sentences: Sequence[str]) -> float | None:
    """The share of sentences that begin with the commonest three words; None for fewer than 2.

    "How do you feel?" and "How do you cope with it?" are two sentences, and one trick. Case and
    punctuation do not count.
    """
    if len(sentences) < 2:
        return None
    openings = Counter(tuple(WORD.findall(s.casefold())[:OPENING]) for s in sentences)
    return max(openings.values()) / len(sentences)


class Clock:
    """How long the parts of a step took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[f"seconds_{name}"] = time.perf_counter() - start
