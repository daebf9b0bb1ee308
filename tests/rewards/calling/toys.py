"""A judge that fails as it is told, and what a sum says of it."""

import asyncio
import threading
import time
from typing import Any

from rewards.calling import CallOptions, with_options
from rewards.reward_sum import RewardSum, Term

COLUMNS: dict[str, Any] = {
    "completions": ["a", "bbb", "cc"],
    "seeker_post": ["s", "s", "t"],
    "topic": ("x", "y", "z"),
}
LONG = 60.0
"""Seconds that no test waits for: it fails by its own assertion long before."""


class Judge:
    """Fails on its first calls, then gives lengths. Counts its calls, and those at one time.

    No call ends before `at_once` of them have begun.
    """

    def __init__(self, failures: int = 0, error: Exception | None = None, at_once: int = 1) -> None:
        self.at_once = at_once
        self.enough = threading.Event()
        self.failures = failures
        self.error = error or OSError("connection refused")
        self.calls: list[list[str]] = []
        self.now = self.most = 0
        self.lock = threading.Lock()

    def begin(self, completions: list[str]) -> int:
        """Count a call in, and give its number."""
        with self.lock:
            self.calls.append(completions)
            self.now += 1
            self.most = max(self.most, self.now)
            if self.most >= self.at_once:
                self.enough.set()
            return len(self.calls)

    def end(self, completions: list[str], number: int) -> list[float]:
        with self.lock:
            self.now -= 1
        if number <= self.failures:
            raise self.error
        return [float(len(text)) for text in completions]

    def sync(self, completions: list[str], **_: Any) -> list[float]:
        number = self.begin(completions)
        self.enough.wait(LONG)
        time.sleep(0.01)
        return self.end(completions, number)

    async def patient(self, completions: list[str], **_: Any) -> list[float]:
        number = self.begin(completions)
        while not self.enough.is_set():
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        return self.end(completions, number)

    def asked_once_at_most(self) -> bool:
        asked = [text for completions in self.calls for text in completions]
        return len(asked) == len(set(asked))


def scored(reward: Any, **options: Any) -> list[float | None]:
    """What a sum says that has the reward, called with these options, as its only term."""
    wrapped = with_options(reward, CallOptions(**options), "judge")
    return RewardSum({"judge": Term(wrapped)})(**COLUMNS)
