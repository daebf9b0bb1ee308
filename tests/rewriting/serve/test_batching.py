"""Batches of what waits: one kind at a time, oldest first, and nobody fails for somebody else."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from rewriting.serve.batching import Batcher, TooMany


class Work:
    """Doubles numbers; keeps its batches, fails on 13, and waits until it may begin."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[int]]] = []
        self.may_begin = threading.Event()
        self.may_begin.set()
        self.begun = threading.Event()

    def __call__(self, kind: str, items: Sequence[int]) -> list[int]:
        self.batches.append((kind, list(items)))
        self.begun.set()
        assert self.may_begin.wait(20)
        if 13 in items:
            raise ValueError("13")
        return [] if 99 in items else [2 * item for item in items]


Scene = Callable[[Batcher, Work], Coroutine[Any, Any, None]]


def play(scene: Scene, largest: int = 8, most_waiting: int = 100) -> Work:
    """Run a scene with a batcher around `Work`."""
    work = Work()

    async def run() -> None:
        batcher = Batcher(work, largest=largest, most_waiting=most_waiting)
        batcher.start()
        try:
            await asyncio.wait_for(scene(batcher, work), 20)
        finally:
            work.may_begin.set()
            await batcher.close()

    asyncio.run(run())
    return work


def asking(batcher: Batcher, kind: str, *items: int) -> list[asyncio.Task[Any]]:
    return [asyncio.ensure_future(batcher.ask(kind, item)) for item in items]


async def begun(work: Work) -> None:
    """Wait until the models are at work."""
    while not work.begun.is_set():
        await asyncio.sleep(0.001)


def test_what_arrives_together_is_one_batch() -> None:
    async def scene(batcher: Batcher, _: Work) -> None:
        found = await asyncio.gather(*asking(batcher, "a", 1, 2, 3))
        assert [one.answer for one in found] == [2, 4, 6]
        assert {one.batch for one in found} == {3}
        assert all(one.waited >= 0 and one.worked >= 0 for one in found)

    assert play(scene).batches == [("a", [1, 2, 3])]


def test_kinds_are_not_mixed_and_the_oldest_comes_first() -> None:
    async def scene(batcher: Batcher, _: Work) -> None:
        tasks = asking(batcher, "a", 1) + asking(batcher, "b", 2) + asking(batcher, "a", 3, 4)
        assert [(await task).answer for task in tasks] == [2, 4, 6, 8]

    assert play(scene, largest=2).batches == [("a", [1, 3]), ("b", [2]), ("a", [4])]


def test_what_comes_while_the_models_work_is_the_next_batch() -> None:
    async def scene(batcher: Batcher, work: Work) -> None:
        work.may_begin.clear()
        first = asking(batcher, "a", 1)
        await begun(work)
        later = asking(batcher, "a", 2, 3)
        await asyncio.sleep(0)
        work.may_begin.set()
        await asyncio.gather(*first, *later)

    assert play(scene).batches == [("a", [1]), ("a", [2, 3])]


def test_who_fails_fails_alone() -> None:
    async def scene(batcher: Batcher, _: Work) -> None:
        found = await asyncio.gather(*asking(batcher, "a", 1, 13, 3), return_exceptions=True)
        assert (found[0].answer, found[2].answer) == (2, 6)
        assert isinstance(found[1], ValueError)

    assert play(scene).batches == [("a", [1, 13, 3]), ("a", [1]), ("a", [13]), ("a", [3])]


def test_a_wrong_number_of_answers_is_an_error() -> None:
    async def scene(batcher: Batcher, _: Work) -> None:
        with pytest.raises(ValueError, match="0 answers to 1 requests"):
            await batcher.ask("a", 99)

    play(scene)


def test_what_nobody_waits_for_is_not_worked_on() -> None:
    async def scene(batcher: Batcher, work: Work) -> None:
        work.may_begin.clear()
        first = asking(batcher, "a", 1)
        await begun(work)
        gone, stays = asking(batcher, "a", 2, 3)
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 1
        work.may_begin.set()
        await asyncio.gather(*first, stays)

    assert play(scene).batches == [("a", [1]), ("a", [3])]


def test_more_than_may_wait_are_refused_at_once() -> None:
    async def scene(batcher: Batcher, work: Work) -> None:
        work.may_begin.clear()
        first = asking(batcher, "a", 1)
        await begun(work)
        waiting = asking(batcher, "a", 2, 3)
        await asyncio.sleep(0)
        with pytest.raises(TooMany):
            await batcher.ask("a", 4)
        work.may_begin.set()
        await asyncio.gather(*first, *waiting)

    play(scene, most_waiting=2)


def test_closing_lets_the_batch_at_work_end() -> None:
    async def scene(batcher: Batcher, work: Work) -> None:
        work.may_begin.clear()
        tasks = asking(batcher, "a", 1)
        await begun(work)
        closing = asyncio.ensure_future(batcher.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        work.may_begin.set()
        await closing
        tasks[0].cancel()

    play(scene)
