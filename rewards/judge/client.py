"""JSON over HTTP with time-outs and retries, for endpoints that are slow, busy or moody.

The standard library is enough here: requests are few, large answers are not expected, and a judge
runs several of them in threads. Left out: keeping connections open, streaming.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import logging
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from rewriting.errors import UserError

logger = logging.getLogger(__name__)

TIMEOUT: Final = 60.0
RETRIES: Final = 4
CONCURRENCY: Final = 8
FIRST_PAUSE: Final = 0.5  # seconds; doubled with every attempt
LONGEST_PAUSE: Final = 30.0
LONGEST_WAIT: Final = 120.0  # what a server may ask for with Retry-After before it is an error
LARGEST_ANSWER: Final = 4_000_000  # bytes
SHOWN_CHARACTERS: Final = 200
TOO_MANY_REQUESTS: Final = 429


class RefusedError(UserError):
    """The endpoint refused a request, and would again."""

    def __init__(self, message: str, status: int, body: str) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class StoppedError(Exception):
    """Another request of the same batch failed, so this one need not go on."""


class _TryAgainError(Exception):
    """What may pass: a time-out, a lost connection, a busy server. wait: seconds, if it said."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected request would carry the key to another server."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Client:
    """Posts JSON to one address.

    key: sent as a bearer token; it is in no message and no representation of this object.
    timeout: seconds until an attempt is given up, from connecting to the end of the answer.
    retries: further attempts after the first, for what may pass.
    """

    def __init__(
        self, address: str, *, key: str = "", timeout: float = TIMEOUT, retries: int = RETRIES
    ) -> None:
        self.address = checked_address(address)
        self.timeout = timeout
        self.retries = retries
        self.pause: Callable[[float, threading.Event], Any] = lambda s, stop: stop.wait(s)
        self._key = key
        self._opener = urllib.request.build_opener(_NoRedirect)

    def post(self, body: Mapping[str, Any], stop: threading.Event) -> str:
        """What the address answers with status 200. Raises StoppedError once `stop` is set."""
        for attempt in range(self.retries + 1):
            if stop.is_set():
                break
            try:
                return self._attempt(body)
            except _TryAgainError as error:
                if attempt == self.retries:
                    raise UserError(
                        f"{self.address} did not answer in {attempt + 1} attempts; the last one: "
                        f"{error}. A longer timeout, more retries or less concurrency may help."
                    ) from None
                wait = backoff(attempt, random.random()) if error.wait is None else error.wait
                logger.warning(
                    "%s: attempt %d of %d failed (%s); the next in %.1f s",
                    self.address,
                    attempt + 1,
                    self.retries + 1,
                    error,
                    wait,
                )
            self.pause(wait, stop)
        raise StoppedError

    def _attempt(self, body: Mapping[str, Any]) -> str:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        request = urllib.request.Request(self.address, json.dumps(body).encode(), headers)
        deadline = time.monotonic() + self.timeout
        try:
            with self._opener.open(request, timeout=self.timeout) as response:
                return self._text(response, deadline)
        except urllib.error.HTTPError as error:
            with error:
                raise self._failure(error, deadline) from None
        except (OSError, http.client.HTTPException) as error:  # URLError and time-outs too
            reason = getattr(error, "reason", error)
            late = isinstance(reason, TimeoutError)
            said = f"no answer within {self.timeout:g} s" if late else f"{reason}"
            raise _TryAgainError(self._hidden(said or type(reason).__name__)) from None

    def _failure(self, error: urllib.error.HTTPError, deadline: float) -> Exception:
        """What to do about a status that is not 200."""
        try:
            body = self._text(error, deadline)
        except (OSError, http.client.HTTPException):
            body = ""
        shown = f"status {error.code}, {first_line(body) or 'without a word'}"
        if error.code != TOO_MANY_REQUESTS and error.code < 500:
            return RefusedError(f"{self.address} refused: {shown}", error.code, body)
        wait = retry_after(error.headers.get("Retry-After"), time.time())
        if wait is not None and wait > LONGEST_WAIT:
            return UserError(
                f"{self.address} asks to wait for {wait:.0f} s ({shown}). Try again then, with a "
                "cache on disk, so that no answer is paid for twice."
            )
        return _TryAgainError(shown, wait)

    def _text(self, response: Any, deadline: float) -> str:
        return self._hidden(_read(response, deadline).decode("utf-8", errors="replace"))

    def _hidden(self, text: str) -> str:
        """The text without the key, which some servers repeat."""
        return text.replace(self._key, "[key]") if self._key else text


def backoff(attempt: int, draw: float) -> float:
    """Seconds before the next attempt: doubled each time, the upper half of it by chance.

    attempt: how many there were before this one. draw: a random number from 0 to 1, so that
    requests that failed together do not come back together.
    """
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * (0.5 + 0.5 * draw)


def retry_after(header: str | None, now: float) -> float | None:
    """The seconds that a Retry-After header asks for, as a number or a date; None without one."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(header).timestamp() - now)
    except ValueError:
        return None


def first_line(text: str) -> str:
    """The first line of a text that says anything, shortened."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[: SHOWN_CHARACTERS - 1]}…"


def checked_address(address: str) -> str:
    """The address, or a UserError where no request could be sent to it."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        usable = False
    if not usable or not address.isascii() or not address.isprintable() or " " in address:
        raise UserError(f"{address!r} is no endpoint: write a URL, as http://127.0.0.1:8000/v1.")
    if "@" in parts.netloc:
        raise UserError(
            f"the endpoint at {parts.hostname} has a password in its URL: put the key into an "
            "environment variable, and name that with api_key_env."
        )
    return address


def key_from(variable: str) -> str:
    """The key in an environment variable; "" asks for none. The message never shows the key."""
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(f"api_key_env: the environment variable {variable} is not set.")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UserError(
            f"api_key_env: the environment variable {variable} holds no key: there are spaces or "
            "characters in it that no header can carry."
        )
    return key


def _read(response: Any, deadline: float) -> bytes:
    """A whole answer. The time-out of a socket starts anew with every byte; this one does not."""
    parts: list[bytes] = []
    while part := response.read1(65_536):
        parts.append(part)
        if time.monotonic() > deadline:
            raise TimeoutError
        if sum(map(len, parts)) > LARGEST_ANSWER:
            raise UserError(f"an answer of more than {LARGEST_ANSWER} bytes came back.")
    return b"".join(parts)
