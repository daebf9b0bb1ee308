"""A line of JSON for every request: what was asked for, how it went, how long it took.

Never an address, a token, a path or a header that a client made up, and no text of a request or an
answer unless that was asked for. An error is logged by its kind and its place in our code, since
its message may quote a text.
"""

from __future__ import annotations

import json
import secrets
import time
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from starlette.datastructures import MutableHeaders

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FACTS: Final = "rewriting.facts"
"""Where in the scope of a request its facts for the log stand."""
PACKAGES: Final = Path(__file__).parents[2]


class Log:
    """Writes lines to a stream. A log that cannot be written does not keep requests from being
    answered."""

    def __init__(self, stream: TextIO, *, texts: bool = False) -> None:
        self.stream, self.texts = stream, texts

    def write(self, event: str, **facts: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event} | facts, ensure_ascii=False)
        with suppress(OSError, ValueError):  # the disk is full, the pipe or the file closed
            self.stream.write(line + "\n")
            self.stream.flush()


class Logged:
    """Wraps the application: numbers every request, logs it, and answers where all else failed."""

    def __init__(self, application: ASGIApp, log: Log) -> None:
        self.application, self.log = application, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        start, number = time.perf_counter(), secrets.token_hex(8)
        facts: dict[str, Any] = {"request": number, "method": known_method(scope["method"])}
        scope[FACTS] = facts

        async def numbered(message: Message) -> None:
            if message["type"] == "http.response.start":
                facts["status"] = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = number
            await send(message)

        try:
            await self.application(scope, receive, numbered)
        except Exception as error:  # the client got its 500; a traceback would show texts
            facts["failure"] = failure(error)
        finally:
            seconds = time.perf_counter() - start
            self.log.write("request", **facts, milliseconds=round(1000 * seconds))


def note(request: Request, **facts: Any) -> None:
    """Add facts to the line of a request."""
    request.scope.get(FACTS, {}).update(facts)


def known_method(method: str) -> str:
    return method if method in ("GET", "HEAD", "POST", "OPTIONS") else "other"


def failure(error: BaseException) -> str:
    """The kind of an error and where in our code it came from; not its message."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(PACKAGES)]
    if not ours:
        return type(error).__name__
    place = Path(ours[-1].filename).relative_to(PACKAGES)
    return f"{type(error).__name__} at {place}:{ours[-1].lineno}"
