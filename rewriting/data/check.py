"""What is in a data set: counted in one pass, in memory that hardly grows with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rewriting.data.rows import BadRow
from rewriting.data.split import fingerprint
from rewriting.exchange import LEVELS, MECHANISMS, Exchange

MAX_BAD_ROWS_KEPT = 1000


@dataclass(slots=True)
class Summary:
    """Counts over exchanges. Lengths are counts of words, kept as histograms."""

    rows: int = 0
    seekers: int = 0
    duplicates: int = 0
    with_history: int = 0
    levels: Counter[tuple[str, int]] = field(default_factory=Counter)
    rationales: Counter[str] = field(default_factory=Counter)
    rationales_lost: Counter[str] = field(default_factory=Counter)
    seeker_words: Counter[int] = field(default_factory=Counter)
    response_words: Counter[int] = field(default_factory=Counter)
    bad_rows: list[BadRow] = field(default_factory=list)
    num_bad_rows: int = 0

    def add_bad_row(self, bad: BadRow) -> None:
        self.num_bad_rows += 1
        if len(self.bad_rows) < MAX_BAD_ROWS_KEPT:
            self.bad_rows.append(bad)

    def json(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "seekers": self.seekers,
            "duplicates": self.duplicates,
            "with_history": self.with_history,
            "bad_rows": self.num_bad_rows,
            "levels": {m: [self.levels[m, level] for level in LEVELS] for m in self.labelled},
            "rationales": dict(self.rationales),
            "rationales_not_in_response": dict(self.rationales_lost),
            "seeker_words": quantiles(self.seeker_words),
            "response_words": quantiles(self.response_words),
        }

    @property
    def labelled(self) -> list[str]:
        return [m for m in MECHANISMS if any(self.levels[m, level] for level in LEVELS)]


def summarise(exchanges: Iterable[Exchange], summary: Summary) -> Summary:
    """Count the exchanges into a summary. Keeps a short digest of every post for duplicates."""
    seen: set[bytes] = set()
    seekers: set[bytes] = set()
    for exchange in exchanges:
        summary.rows += 1
        key = fingerprint(exchange.seeker_post, exchange.response_post)
        summary.duplicates += key in seen
        seen.add(key)
        seekers.add(fingerprint(exchange.seeker_id or exchange.seeker_post))
        summary.with_history += bool(exchange.history)
        summary.seeker_words[len(exchange.seeker_post.split())] += 1
        summary.response_words[len(exchange.response_post.split())] += 1
        for mechanism, label in exchange.labels.items():
            summary.levels[mechanism, label.level] += 1
            summary.rationales[mechanism] += len(label.rationales)
            lost = sum(text not in exchange.response_post for text in label.rationales)
            summary.rationales_lost[mechanism] += lost
    summary.seekers = len(seekers)
    return summary


def quantiles(histogram: Counter[int]) -> dict[str, int]:
    """Smallest, median, 95th percentile and largest of a histogram of lengths."""
    total = histogram.total()
    if not total:
        return {}
    values = sorted(histogram)
    return {
        "min": values[0],
        "median": _quantile(histogram, values, total * 0.5),
        "p95": _quantile(histogram, values, total * 0.95),
        "max": values[-1],
    }


def _quantile(histogram: Counter[int], values: list[int], count: float) -> int:
    passed = 0
    for value in values:
        passed += histogram[value]
        if passed >= count:
            return value
    return values[-1]
