"""One writer for all requests: whoever waits at the same time shares a commit.

A commit waits for the disk. Twenty raters who vote in the same moment would wait for each other
twenty times; here the votes that come in while the disk is busy go into the next commit together.
Nobody is answered before the commit with their vote is on the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from rewriting.ab.server.work import Work

T = TypeVar("T")
Operation = Callable[[Work], Any]


class Writer:
    """Runs operations on its own store, in batches, in a thread. Lives in one event loop."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._waiting: list[tuple[Operation, asyncio.Future[Any]]] = []
        self._task: asyncio.Task[None] | None = None

    async def run(self, operation: Callable[[Work], T]) -> T:
        """What the operation returns, once it is on the disk; or what it raised, undone."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((operation, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all())
        return await future

    def close(self) -> None:
        self._work.store.close()

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                results = await asyncio.to_thread(self._commit, [one for one, _ in batch])
            except Exception as error:  # the commit itself: nothing of the batch was saved
                results = [error] * len(batch)
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():  # the client went away; the vote is kept
                    continue
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def _commit(self, operations: list[Operation]) -> list[Any]:
        with self._work.store.transaction():
            return [self._attempt(operation) for operation in operations]

    def _attempt(self, operation: Operation) -> Any:
        """One operation in a transaction of its own, inside that of the batch."""
        try:
            with self._work.store.transaction():
                return operation(self._work)
        except Exception as error:
            return error
