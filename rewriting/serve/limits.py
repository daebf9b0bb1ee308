"""What one client may ask of the server: how much, how often, and for how long."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a server; `rewriting serve` sets the first five."""

    characters: int = 2000
    """Of a post, a reply, or a turn of the history."""
    per_minute: int = 120
    """Requests of one address that need a model; 0: no limit."""
    seconds: float = 300.0
    """How long a request waits for its answer."""
    batch: int = 64
    """Requests that the models work on together."""
    waiting: int = 256
    """Requests that wait for the models; more are refused."""
    turns: int = 20
    """Of a history."""
    body: int = 256 * 1024
    """Bytes of a request."""


class RateLimit:
    """A bucket for every address: it holds a minute's worth of requests and fills up evenly.

    remembered: how many addresses are known at once. One that was forgotten starts with a full
    bucket, as a new one does.
    """

    def __init__(
        self,
        per_minute: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        remembered: int = 10_000,
    ) -> None:
        self.per_minute, self.clock, self.remembered = per_minute, clock, remembered
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, address: str) -> float:
        """0 where a request is taken, and counted; otherwise when to come again."""
        if not self.per_minute:
            return 0.0
        now, per_second = self.clock(), self.per_minute / 60
        left, since = self._buckets.pop(address, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - since) * per_second)
        wait = 0.0 if left >= 1 else (1 - left) / per_second
        self._buckets[address] = (left if wait else left - 1, now)
        while len(self._buckets) > self.remembered:
            self._buckets.popitem(last=False)
        return wait
