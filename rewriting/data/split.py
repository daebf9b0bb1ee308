"""Splits that never tear a seeker's post apart, and duplicates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Literal

from rewriting.exchange import Exchange

Split = Literal["train", "dev", "test"]


def split_of(exchange: Exchange, *, seed: int = 12, dev: float = 0.1, test: float = 0.2) -> Split:
    """The split an exchange belongs to, by a hash of its seeker: no file of indices to keep.

    All responses to one post share a split, in every file and in every order of rows.
    """
    key = exchange.seeker_id or normalised(exchange.seeker_post)
    digest = hashlib.sha256(f"{seed}:{key}".encode()).hexdigest()
    place = int(digest[:8], 16) / 2**32
    if place < test:
        return "test"
    return "dev" if place < test + dev else "train"


def normalised(text: str) -> str:
    """Lower case, white space folded: what makes two texts count as the same."""
    return " ".join(text.lower().split())


def fingerprint(*texts: str) -> bytes:
    """A short digest that stands for texts in a set of seen ones."""
    joined = "\x1f".join(normalised(text) for text in texts)
    return hashlib.blake2b(joined.encode(), digest_size=12).digest()


def without_duplicates(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Drop exchanges whose two posts have come before. Keeps 12 bytes for each one seen."""
    seen: set[bytes] = set()
    for exchange in exchanges:
        key = fingerprint(exchange.seeker_post, exchange.response_post)
        if key not in seen:
            seen.add(key)
            yield exchange
