"""Personal links and signed pages.

A link holds 192 random bits; the store keeps only their SHA-256, which needs no salt at that
length. A `Ticket` rides in every rating page: which rater saw which item when, signed, so that the
time a vote took is the server's own and the vote's idempotency key cannot be made up.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def new_token() -> str:
    return secrets.token_urlsafe(24)


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Ticket:
    """A page with a pair, as it was sent: a random number of its own, and when."""

    number: str
    shown: float


def write_ticket(secret: str, rater: int, item: str) -> str:
    """A signed ticket for the page of a pair, with the time at which it is sent."""
    body = f"{secrets.token_hex(8)}-{int(time.time() * 1000):x}"
    return f"{body}-{_signature(secret, body, rater, item)}"


def read_ticket(text: str, secret: str, rater: int, item: str) -> Ticket | None:
    """The ticket, or None unless it was written for this rater and item."""
    body, _, signature = text.rpartition("-")
    expected = _signature(secret, body, rater, item)
    if not hmac.compare_digest(signature.encode("utf-8", "surrogatepass"), expected.encode()):
        return None
    number, _, milliseconds = body.partition("-")
    return Ticket(number, int(milliseconds, 16) / 1000)


def _signature(secret: str, body: str, rater: int, item: str) -> str:
    message = f"{body}:{rater}:{item}".encode("utf-8", "surrogatepass")
    return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()[:32]


class Guesses:
    """Limits how many wrong tokens an address may try.

    A link that worked from an address goes on working there while others are being refused, so that
    one guesser behind a shared address does not lock the raters out.
    """

    def __init__(
        self,
        limit: int = 20,
        seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        remembered: int = 10_000,
    ) -> None:
        self.limit, self.seconds, self.clock, self.remembered = limit, seconds, clock, remembered
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def refused(self, address: str, hashed: str) -> bool:
        """Whether a token from this address is not even looked up now."""
        if (address, hashed) in self._known:
            return False
        times = self._wrong.get(address)
        if times is None:
            return False
        while times and times[0] <= self.clock() - self.seconds:
            times.popleft()
        return len(times) >= self.limit

    def right(self, address: str, hashed: str) -> None:
        self._remember(self._known, (address, hashed), None)

    def wrong(self, address: str, hashed: str) -> None:
        self._known.pop((address, hashed), None)
        times = self._wrong.get(address) or deque(maxlen=self.limit)
        times.append(self.clock())
        self._remember(self._wrong, address, times)

    def _remember(self, where: OrderedDict[Any, Any], key: object, value: object) -> None:
        where[key] = value
        where.move_to_end(key)
        while len(where) > self.remembered:
            where.popitem(last=False)
