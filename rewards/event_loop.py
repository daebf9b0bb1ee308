"""One event loop per process, on which all async rewards are awaited.

A client, a semaphore or a connection belongs to the event loop it was first used on. `asyncio.run`
makes a loop per call and closes it, so what a reward keeps from one batch to the next would fail at
the second with "Event loop is closed". Here, as in TRL's trainers, one loop runs in a daemon thread
until the process ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")

_loops: Final[list[asyncio.AbstractEventLoop]] = []
"""The loop of all rewards, and one more for each level at which a reward on it waits for others."""

_abandoned: Final[list[asyncio.AbstractEventLoop]] = []
_lock = threading.Lock()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the lasting loop and wait for its result, whoever calls.

    The caller may itself run inside an event loop, which then waits as for any other function. If
    the waiting is interrupted, as by Ctrl-C, the coroutine is cancelled.
    """
    loop = _lasting_loop()
    running: list[asyncio.Task[Any] | None] = []
    given_up: list[bool] = []

    async def watched() -> T:
        running.append(asyncio.current_task())
        if given_up:  # Ctrl-C came before the loop got to it
            work.close()
            raise asyncio.CancelledError
        return await work

    # An interruption may come at any moment from here on, also before there is a future to cancel.
    try:
        return asyncio.run_coroutine_threadsafe(watched(), loop).result()
    except BaseException:
        given_up.append(True)
        for task in running:
            if task is not None:  # Does nothing where the coroutine itself has raised.
                loop.call_soon_threadsafe(task.cancel)
        raise


async def gather_or_cancel(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all coroutines, in order; when one raises, the others are cancelled.

    `asyncio.gather` alone would leave them running, which matters on a loop that never closes.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def in_thread(call: Callable[[], Any]) -> Any:
    """What a call gives or raises in a thread of its own, which is left behind on cancellation.

    It is a daemon thread, since the process would wait for those of an executor at its end.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_result((value, error))

    def work() -> None:
        try:
            value = call()
        except BaseException as error:
            loop.call_soon_threadsafe(settle, None, error)
        else:
            loop.call_soon_threadsafe(settle, value, None)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="reward", daemon=True).start()
    value, error = await outcome
    if error is not None:
        raise error
    return value


def _lasting_loop() -> asyncio.AbstractEventLoop:
    """The loop to wait for. It is the first one, or on the first one's own thread the next.

    A loop cannot wait for itself, as it would where an async reward calls a sum of async rewards.
    """
    running = asyncio._get_running_loop()
    with _lock:
        level = _loops.index(running) + 1 if running in _loops else 0
        if level == len(_loops):
            _loops.append(_started())
        return _loops[level]


def _started() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_serve, args=(loop,), name="async-rewards", daemon=True).start()
    return loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop for good. A reward that calls sys.exit() ends its caller, not the loop."""
    while not loop.is_closed():
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()


def _forget() -> None:
    """In a forked child, whose copy of the loop has no thread, start anew when first needed.

    The copy is kept, since closing it would take the file descriptors out of the parent's epoll.
    """
    global _lock
    _lock = threading.Lock()  # Another thread of the parent may have held the old one.
    _abandoned.extend(_loops)
    _loops.clear()


if hasattr(os, "register_at_fork"):  # Windows has none.
    os.register_at_fork(after_in_child=_forget)
