"""Processes that share a job."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rewriting.runtime.files.folders import lock_file

T = TypeVar("T")
R = TypeVar("R")
POLL_SECONDS = 1.0


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


def own_share(rows: Sequence[T]) -> tuple[Sequence[T], int]:
    """The rows of this process, beside each other, and the place of the first one among all."""
    size = -(-len(rows) // num_processes())
    first = process_index() * size
    return rows[first : first + size], first


def share_work(rows: Sequence[T], work: Callable[[Sequence[T]], Sequence[R]]) -> list[R]:
    """`work(rows)`, of which each process does a part; all of them get all the results.

    All must call it with the same rows. A process that gets none is not asked.
    """
    own, _ = own_share(rows)
    return [result for part in across_processes(list(work(own)) if own else []) for result in part]


@contextmanager
def locked_for_all(target: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """One job at a time for `target`: the first process holds the lock (files/folders.py) for all.

    All processes of the job must enter. While another job has the lock they tell each other every
    second that they wait, so that the time limit of a process group, which is for one exchange, is
    never reached. `on_wait` is called once, in the first process.
    """
    from filelock import FileLock, Timeout

    lock = None
    if process_index() == 0:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(lock_file(target))

    def acquired() -> bool:
        try:
            if lock is not None:
                lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    waits = 0
    while not across_processes(acquired())[0]:
        if lock is not None and not waits:
            on_wait()
        waits += 1
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()
