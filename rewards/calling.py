"""How a term is called: with a time limit, with retries, and row by row.

A judge behind a network is slow, fails now and then, and takes one question at a time. Every term
of a mapping of rewards may have the options `timeout`, `retries` and `concurrency`; `with_options`
wraps a reward into a reward that is called so.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from rewards.event_loop import gather_or_cancel, in_thread, run
from rewards.protocol import (
    Reward,
    RewardError,
    answer,
    by_row,
    checked,
    compares_rows,
    failure,
    is_async,
    name_of,
    result_of,
    shown_row,
)
from rewriting.errors import UserError

logger = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
"""Seconds between the tries of a call: the first pause, doubled after each try up to the longest.
Each is multiplied by a random number from 0.5 to 1.5, so that calls do not come back together."""

_jitter = random.Random()  # Its own, so that a retry does not change the randomness of a training.


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How a term is called.

    timeout: seconds that one call may take, None for no limit. retries: how often a call that
    raised or took too long is repeated. concurrency: how many rows are asked for at once, each in
    a call of its own; None calls the term once with the whole batch.
    """

    timeout: float | None = None
    retries: int = 0
    concurrency: int | None = None

    def __post_init__(self) -> None:
        if self.timeout is not None and not _is_positive(self.timeout):
            raise UserError(f"timeout is {self.timeout!r}; it must be a number of seconds above 0.")
        if not _is_count(self.retries, 0):
            raise UserError(f"retries is {self.retries!r}; it must be a whole number, 0 or more.")
        if self.concurrency is not None and not _is_count(self.concurrency, 1):
            raise UserError(
                f"concurrency is {self.concurrency!r}; it must be a whole number, 1 or more."
            )


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def with_options(reward: Reward, options: CallOptions, name: str | None = None) -> Reward:
    """The reward, called with these options; itself where they ask for nothing.

    An async reward stays async. A sync one with a timeout or concurrency is called in daemon
    threads, so it must be safe to call from several threads. What belongs to the caller's thread,
    such as torch's current CUDA device, is not set in them.
    """
    if options == CallOptions():
        return reward
    if options.concurrency is not None and compares_rows(reward):
        raise UserError(
            "it compares the rows of a batch, so it cannot be asked row by row: leave out "
            "`concurrency`."
        )
    caller = _Caller(reward, name or name_of(reward), options)

    async def call_async(**columns: Any) -> list[float | None]:
        return await caller.batch(columns)

    def call_in_threads(**columns: Any) -> list[float | None]:
        return run(caller.batch(columns))

    def call_here(**columns: Any) -> list[float | None]:
        return caller.batch_here(columns)

    chosen: Any
    if is_async(reward):
        chosen = call_async
    else:
        needs_threads = options.timeout is not None or options.concurrency is not None
        chosen = call_in_threads if needs_threads else call_here
    chosen.__name__ = chosen.__qualname__ = caller.name
    chosen.compares_rows = compares_rows(reward)
    wrapped: Reward = chosen
    return wrapped


class _NoAnswer(Exception):
    """A call took longer than its timeout."""


class _Caller:
    """Calls a reward as its options say."""

    def __init__(self, reward: Reward, name: str, options: CallOptions) -> None:
        self.reward = reward
        self.name = name
        self.options = options

    async def batch(self, columns: dict[str, Any]) -> list[float | None]:
        """The checked values of a batch, from one call or from a call per row."""
        if self.options.concurrency is None:
            return await self._tried(columns, 0, nullcontext())
        rows, write_log = _by_single_rows(columns)
        slots = asyncio.Semaphore(self.options.concurrency)
        values = await gather_or_cancel(
            self._tried(single, number, slots) for number, single in enumerate(rows)
        )
        write_log()
        return [value for (value,) in values]

    def batch_here(self, columns: dict[str, Any]) -> list[float | None]:
        """The same of a sync reward that has retries alone, in the caller's own thread."""
        attempt = 1
        while True:
            try:
                values = answer(self.reward, columns)
                if inspect.isawaitable(values):
                    values = run(result_of(values))
            except Exception as error:
                pause = self._pause(error, attempt, columns, 0)
            else:
                return checked(self.name, values, columns)
            time.sleep(pause)
            attempt += 1

    async def _tried(
        self,
        columns: dict[str, Any],
        first: int,
        slots: AbstractAsyncContextManager[Any],
    ) -> list[float | None]:
        """One call, repeated while it fails and retries are left; without a slot in the pauses."""
        attempt = 1
        while True:
            try:
                async with slots:
                    values = await self._once(columns)
            except Exception as error:
                pause = self._pause(error, attempt, columns, first)
            else:
                return checked(self.name, values, columns, first)
            await asyncio.sleep(pause)
            attempt += 1

    async def _once(self, columns: dict[str, Any]) -> Any:
        try:
            async with asyncio.timeout(self.options.timeout) as limit:
                if is_async(self.reward):
                    values = answer(self.reward, columns)
                else:
                    values = await in_thread(lambda: answer(self.reward, columns))
                return await values if inspect.isawaitable(values) else values
        except TimeoutError as error:
            if limit.expired():
                raise _NoAnswer from error
            raise  # The reward's own, as of its HTTP client.

    def _pause(
        self, error: Exception, attempt: int, columns: Mapping[str, Any], first: int
    ) -> float:
        """How long to wait before the next try; raises where there is none.

        A UserError is a mistake that the next try would repeat.
        """
        if isinstance(error, UserError):
            raise error
        tries = self.options.retries + 1
        if attempt == tries:
            raise self._given_up(error, columns, first) from error
        pause = min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE) * _jitter.uniform(0.5, 1.5)
        logger.warning(
            "reward %r: try %d of %d failed (%s); the next in %.1f s. %s",
            self.name,
            attempt,
            tries,
            self._reason(error),
            pause,
            shown_row(columns, 0, first),
        )
        return pause

    def _reason(self, error: Exception) -> str:
        if isinstance(error, _NoAnswer):
            return f"no answer within {self.options.timeout:g} s"
        return f"{type(error).__name__}: {error}"

    def _given_up(self, error: Exception, columns: Mapping[str, Any], first: int) -> RewardError:
        tries = self.options.retries + 1
        if not isinstance(error, _NoAnswer):
            return failure(self.name, error, columns, first, tries)
        after = f" in the last of {tries} tries" if tries > 1 else ""
        return RewardError(
            f"reward {self.name!r} gave {self._reason(error)}{after}. Give it a longer `timeout`, "
            f"or ask less of it at once. {shown_row(columns, 0, first)}"
        )


def _by_single_rows(
    columns: Mapping[str, Any],
) -> tuple[list[dict[str, Any]], Callable[[], None]]:
    """The keywords of a batch as the keywords of its rows, each a batch of one.

    Rows are answered in any order, and a trainer's `log_extra` expects a whole column in the order
    of the batch. So it is collected, and the function that comes back writes it.
    """
    count = len(columns["completions"])
    log_extra = columns.get("log_extra")
    extras: dict[str, list[Any]] = {}

    def single(row: int) -> dict[str, Any]:
        def keep(column: str, values: Any) -> None:
            (extras.setdefault(column, [None] * count)[row],) = values

        own = {k: [v[row]] if by_row(v, count) else v for k, v in columns.items()}
        return own | {"log_extra": keep} if log_extra is not None else own

    def write_log() -> None:
        for column, values in extras.items():
            columns["log_extra"](column, values)

    return [single(row) for row in range(count)], write_log
