"""Processes that share a job."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def join_processes() -> None:
    """Make one job of the processes that torchrun started on CPUs.

    Unless accelerate is told that there is no GPU, each would be a job of its own, all of them
    writing to the same files.
    """
    if "LOCAL_RANK" in os.environ:
        import torch

        if not torch.cuda.is_available():
            os.environ.setdefault("ACCELERATE_USE_CPU", "true")


def across_processes(value: Any) -> list[Any]:
    """Every process's value, in order of their ranks; of a single process, its own."""
    import torch.distributed as distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return [value]
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values


def process_index() -> int:
    """The place of this process's value in that list."""
    import torch.distributed as distributed

    running = distributed.is_available() and distributed.is_initialized()
    return distributed.get_rank() if running else 0


def num_processes() -> int:
    import torch.distributed as distributed

    running = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if running else 1


def share_work(rows: Sequence[T], work: Callable[[Sequence[T]], Sequence[R]]) -> list[R]:
    """`work(rows)`, of which each process does a part; all of them get all the results.

    All must call it with the same rows. A process that gets none is not asked.
    """
    size = -(-len(rows) // num_processes())
    own = rows[process_index() * size : (process_index() + 1) * size]
    return [result for part in across_processes(list(work(own)) if own else []) for result in part]
