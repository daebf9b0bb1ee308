"""Requests that arrive together are worked on together, by one thread that owns the models."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

GATHER_SECONDS: Final = 0.01
"""How long the first request waits for others that were sent at the same time."""

Work = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""(what is asked for, its items) → an answer for each item."""


class TooMany(Exception):
    """More requests wait than the server is set to keep."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, how long its request waited for the models and how long they took, and how many
    requests they worked on together."""

    answer: Any
    waited: float
    worked: float
    batch: int


@dataclass(eq=False, slots=True)
class _Job:
    kind: Hashable
    item: Any
    answered: asyncio.Future[Answered]
    since: float = field(default_factory=time.perf_counter)


class Batcher:
    """Hands what waits to `work`, a batch of one kind at a time, the oldest request first.

    Models and their memories are not made for several threads, so there is one. Where a batch
    fails, its items are tried one by one: a request fails by itself alone. A request that nobody
    waits for any more is dropped before it costs anything.
    """

    def __init__(self, work: Work, *, largest: int, most_waiting: int) -> None:
        self.work, self.largest, self.most_waiting = work, largest, most_waiting
        self._waiting: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="models")
        self._running: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        return sum(not job.answered.done() for job in self._waiting)

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop; the batch that the models are working on is finished first."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        await asyncio.to_thread(self._thread.shutdown)

    async def ask(self, kind: Hashable, item: Any) -> Answered:
        """The answer to one item. Items of equal kind may share a batch."""
        if self.waiting >= self.most_waiting:
            raise TooMany
        job = _Job(kind, item, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._arrived.set()
        return await job.answered

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(GATHER_SECONDS)
            while batch := self._next_batch():
                await self._answer(batch)
            self._arrived.clear()

    def _next_batch(self) -> list[_Job]:
        """The oldest job and others of its kind, in their order; the rest goes on waiting."""
        wanted = [job for job in self._waiting if not job.answered.done()]
        batch = [job for job in wanted if job.kind == wanted[0].kind][: self.largest]
        taken = set(map(id, batch))
        self._waiting = deque(job for job in wanted if id(job) not in taken)
        return batch

    async def _answer(self, batch: Sequence[_Job]) -> None:
        start = time.perf_counter()
        loop = asyncio.get_running_loop()
        items = [job.item for job in batch]
        try:
            answers = await loop.run_in_executor(self._thread, self.work, batch[0].kind, items)
            if len(answers) != len(items):
                raise ValueError(f"{len(answers)} answers to {len(items)} requests")
        except Exception as error:
            if len(batch) > 1:
                for job in batch:
                    await self._answer([job])
            elif not batch[0].answered.done():
                batch[0].answered.set_exception(error)
            return
        worked = time.perf_counter() - start
        for job, answer in zip(batch, answers, strict=True):
            if not job.answered.done():
                found = Answered(answer, start - job.since, worked, len(batch))
                job.answered.set_result(found)
