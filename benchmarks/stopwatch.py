"""What a benchmark calls a second."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def is_of_the_processor() -> bool:
    """With one thread on a CPU, processor time: what else the machine does hardly changes it.

    With several threads, or a GPU, time on the wall: set OMP_NUM_THREADS=1 for a busy machine.
    """
    return torch.get_num_threads() == 1 and not torch.cuda.is_available()


def seconds() -> float:
    return time.process_time() if is_of_the_processor() else time.perf_counter()


class Stopwatch:
    """A `Clock` of policies/training/figures.py in these seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = seconds()
        yield
        self.seconds[f"seconds_{name}"] = seconds() - start
