"""Processes that take the same steps in turn, so that a busy moment of the machine hits all.

    with SideProcess([python, "worker.py"], threads=1) as side:
        side.ask(settings)
        answer = side.ask({})

Each answers every line on its input with one on its output. This file is read in environments of
peers too: it needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any


class TwoClocks:
    """Seconds of the processor and on the wall, by part."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self.wall: dict[str, float] = {}

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.cpu[part] = time.process_time() - cpu
        self.wall[part] = time.perf_counter() - wall


def serve(start: Callable[[Any], Callable[[TwoClocks], Any]]) -> None:
    """Be a side: the first line says what to make a step of, each line after it asks for one.

    What libraries print goes to the error output.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    step: Callable[[TwoClocks], Any] | None = None
    for line in sys.stdin:
        clocks, answer = TwoClocks(), None
        if step is None:
            step = start(json.loads(line))
        else:
            answer = step(clocks)
        found = {"cpu": clocks.cpu, "wall": clocks.wall, "peak": peak(), "answer": answer}
        answers.write(json.dumps(found) + "\n")
        answers.flush()


def peak() -> float:
    """The most memory this process has had, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


class SideProcess:
    """A process that serves. Start it from one that holds little: on Linux a new process counts
    as its own what its parent held when it began."""

    def __init__(self, command: Sequence[str], threads: int) -> None:
        surroundings = {"OMP_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": ""}
        quiet = {"PYTHONWARNINGS": "ignore", "TOKENIZERS_PARALLELISM": "false"}
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **surroundings, **quiet},
        )

    def __enter__(self) -> SideProcess:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()

    def ask(self, line: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(line) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it is no more, and has said why
        if not (found := self.process.stdout.readline()):
            raise SystemExit(f"error: {self.process.args!r} ended; what it said stands above.")
        answer: dict[str, Any] = json.loads(found)
        return answer
