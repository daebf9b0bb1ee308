"""Which rows are read together: what padding costs beside what a batch of its own costs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, TypeVar

K = TypeVar("K")

CPU_PADDING: Final = 16
"""Tokens of padding that cost a CPU as much as one more batch: measured with one thread on
minilm-l6, mpnet-base and smollm2-135m (20, 15 and 18). On a GPU padding costs hardly anything."""


def max_padding(device: Any) -> int | None:
    """How much padding a batch may have on a device; None: any."""
    return CPU_PADDING if device.type == "cpu" else None


def batches_by_length(
    lengths: Sequence[int], max_tokens: int, max_padding: int | None = None
) -> Iterator[list[int]]:
    """Row numbers in batches of similar length, each at most `max_tokens` with its padding.

    max_padding: tokens of padding that a batch may have; the row that would take more begins the
    next batch.
    """
    batch: list[int] = []
    written = 0
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        size = (len(batch) + 1) * lengths[row]
        padding = size - lengths[row] - written
        too_much = max_padding is not None and padding > max_padding
        if batch and (size > max_tokens or too_much):
            yield batch
            batch, written = [], 0
        batch.append(row)
        written += lengths[row]
    if batch:
        yield batch


def batches_of_groups(
    rows: Sequence[K], batch_size: int, group: Callable[[K], Hashable]
) -> Iterator[list[K]]:
    """Rows in their order, at most `batch_size` at once. Neighbours of one group stay together
    where a batch holds them all."""
    batch: list[K] = []
    for _, members in groupby(rows, key=group):
        own = list(members)
        if batch and len(batch) + len(own) > batch_size:
            yield batch
            batch = []
        for row in own:
            if len(batch) == batch_size:
                yield batch
                batch = []
            batch.append(row)
    if batch:
        yield batch
