"""Connections that do not keep others waiting: slow and silent ones are closed.

uvicorn closes a connection that is idle between two requests. One that never finishes its first
request stays open for ever, and a few hundred of them use up the files that a process may open.
Here a request has to arrive within seconds, an answer has to be taken within a minute, and when
there are too many connections, the one that has been waited for longest goes first.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS: Final = 15.0
"""From the beginning of a connection, or the last answer on it, to the end of the next request."""
ANSWER_SECONDS: Final = 60.0
"""What our work and the client's reading of the answer may take after that."""
KEEP_ALIVE_SECONDS: Final = 5
MOST_CONNECTIONS: Final = 512
SPARE_FILES: Final = 64
"""Files that a process opens beside its connections: votes, models, pages, the log."""


def most_connections() -> int:
    """How many connections there may be: fewer than the files that this process may open."""
    try:
        import resource
    except ImportError:  # no such limit on Windows
        return MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(16, min(MOST_CONNECTIONS, files - SPARE_FILES))


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP connection with a limit to its patience, and to the number of its kind."""

    request_seconds = REQUEST_SECONDS
    answer_seconds = ANSWER_SECONDS
    limit = MOST_CONNECTIONS
    _timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.aborted = False
        self._wait_for_request()
        self._make_room()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._timer.cancel()
        if self.transport.is_closing():  # once the client has read the answer, if ever it does
            self._timer = self.loop.call_later(self.answer_seconds, self._abort)
        else:
            self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    @property
    def waits_for_client(self) -> bool:
        """Whether the next request has not come, or not all of it."""
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body

    def _wait_for_request(self) -> None:
        self.since = self.loop.time()
        self._timer = self.loop.call_later(self.request_seconds, self._request_is_late)

    def _request_is_late(self) -> None:
        if self.waits_for_client:
            self._abort()
        else:
            self._timer = self.loop.call_later(self.answer_seconds, self._abort)

    def _abort(self) -> None:
        self.aborted = True  # it is counted among the connections for a moment more
        self.transport.abort()

    def _make_room(self) -> None:
        """Close one connection where there are too many: one that is closing, if there is any.

        Otherwise the one we wait for longest: a slow client, or an idle one who will come again.
        """
        all_of_us: Any = self.connections
        still_open = [one for one in all_of_us if not one.aborted]
        if len(still_open) > self.limit:
            closing = [one for one in still_open if one.transport.is_closing()]
            waiting = closing or [one for one in still_open if one.waits_for_client]
            min(waiting, key=lambda one: one.since)._abort()
