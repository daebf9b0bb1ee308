"""Randomness and data order that follow from (seed, step, process) and from nothing else.

A run that stops and resumes at any step needs no saved generator state: it asks for the seed and
the rows of the step it is at, and gets what an uninterrupted run would have got.
"""

from __future__ import annotations

import hashlib
import random
from functools import lru_cache


def derive_seed(seed: int, *parts: int | str) -> int:
    """A seed for one purpose: 63 bits from a hash, so that near inputs give far outputs."""
    text = ":".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def rows_of_step(
    num_rows: int,
    batch_size: int,
    *,
    seed: int,
    step: int,
    process: int = 0,
    num_processes: int = 1,
) -> list[int]:
    """The rows that one process works on at one step.

    `batch_size` is the global one. Epochs are shuffled anew and follow each other without a seam;
    each process takes its contiguous share of the batch, so that the batch as a whole does not
    depend on how many processes share it.
    """
    if num_rows < 1:
        raise ValueError("there are no rows to draw from")
    if batch_size % num_processes:
        raise ValueError(f"a batch of {batch_size} cannot be shared by {num_processes} processes")
    share = batch_size // num_processes
    first = step * batch_size + process * share
    return [_row(num_rows, seed, place) for place in range(first, first + share)]


def _row(num_rows: int, seed: int, place: int) -> int:
    epoch, offset = divmod(place, num_rows)
    return _shuffled(num_rows, seed, epoch)[offset]


@lru_cache(maxsize=2)
def _shuffled(num_rows: int, seed: int, epoch: int) -> tuple[int, ...]:
    order = list(range(num_rows))
    random.Random(derive_seed(seed, "epoch", epoch)).shuffle(order)
    return tuple(order)
