"""A real server under slow and silent clients, and with an admin page that takes its time."""

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rewriting.ab.server import admin
from rewriting.ab.server.server import settings
from rewriting.web import connections
from rewriting.web.connections import TimedProtocol
from tests.rewriting.ab.toys import ADMIN, Site
from tests.rewriting.listening import Listening


class Served(Listening):
    """A site on a port of this machine, with little patience."""

    def __init__(self, site: Site) -> None:
        super().__init__(settings(site.server))
        self.site = site
        self.start()

    def connect(self, sent: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        client.sendall(sent)
        return client

    def get(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with suppress(ConnectionError):
            connection.request("GET", path)
            status = connection.getresponse().status
            connection.close()
            return status
        return 0


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(TimedProtocol, "request_seconds", 0.5)
    monkeypatch.setattr(TimedProtocol, "answer_seconds", 2.0)
    monkeypatch.setattr(TimedProtocol, "limit", 20)
    served = Served(Site(tmp_path / "study"))
    yield served
    served.stop()
    served.site.store.close()


def is_closed(client: socket.socket) -> bool:
    """Whether the server has closed a connection on which nothing was sent back."""
    client.settimeout(0.01)
    try:
        return not client.recv(1)
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def seconds_open(client: socket.socket) -> float:
    """How long the server keeps a connection."""
    start = time.monotonic()
    with client, suppress(ConnectionError):
        while client.recv(4096):
            pass
    return time.monotonic() - start


HEAD = b"POST /r/x/consent HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        HEAD + b"Content-Length: 100\r\n\r\nanswer=",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nan",
    ],
)
def test_half_a_request_is_not_waited_for(served: Served, sent: bytes) -> None:
    assert seconds_open(served.connect(sent)) < 5


def test_a_byte_now_and_then_is_no_reason_to_wait(served: Served) -> None:
    sent = 0
    with served.connect() as client, suppress(ConnectionError):
        for sent in range(100):
            client.sendall(HEAD[sent : sent + 1])
            time.sleep(0.05)
    assert sent < 50


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(served: Served) -> None:
    client = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    client.connect()
    connection = client.sock
    for _ in range(4):  # longer than one request may take, but each in its time
        client.request("GET", "/")
        assert client.getresponse().read().startswith(b"<!doctype html>")
        time.sleep(0.3)
    assert client.sock is connection
    assert seconds_open(connection) < 5


def test_the_oldest_waiting_connection_makes_room(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimedProtocol, "request_seconds", 60.0)
    slow = [served.connect(b"GET / HT") for _ in range(50)]
    assert served.get(served.site.path(1, "/consent")) == 200
    assert len(served.server.server_state.connections) <= TimedProtocol.limit
    assert [is_closed(client) for client in slow] == [True] * 31 + [False] * 19
    for client in slow:
        client.close()


class Closing(TimedProtocol):
    """A connection without a network."""

    def __init__(self, closing: bool, since: float, connections: set[Any]) -> None:
        self.connections, self.since, self.aborted = connections, since, False
        self.transport = SimpleNamespace(is_closing=lambda: closing, abort=lambda: None)  # type: ignore[assignment]
        self.cycle = None  # type: ignore[assignment]
        connections.add(self)


def test_connections_that_are_closing_count_and_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimedProtocol, "limit", 2)
    together: set[Any] = set()
    oldest, closing, older, last = (
        Closing(closing, since, together)
        for closing, since in ((False, 1.0), (True, 3.0), (False, 2.0), (False, 4.0))
    )
    gone = []
    for _ in range(3):
        last._make_room()
        gone.append([one.aborted for one in (oldest, closing, older, last)])
    assert gone[0] == [False, True, False, False]
    assert gone[1] == gone[2] == [True, True, False, False], "what was aborted counts no more"


def test_an_answer_that_nobody_reads_does_not_keep_a_closing_connection(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def large(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * (64 << 20)})

    monkeypatch.setattr(TimedProtocol, "answer_seconds", 0.5)
    monkeypatch.setattr(served.server.config, "loaded_app", large)
    request = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    with served.connect(request) as client:
        assert client.recv(4) == b"HTTP"
        deadline = time.monotonic() + 5
        while served.server.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not served.server.server_state.connections


def test_there_are_fewer_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    for files, expected in ((200, 136), (10, 16), (10**6, 512), (resource.RLIM_INFINITY, 512)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert connections.most_connections() == expected


def test_the_admin_page_keeps_nobody_waiting(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    make = admin.overview

    def slow(work: Any) -> dict[str, Any]:
        begun.set()
        time.sleep(1.0)
        return make(work)

    monkeypatch.setattr(admin, "overview", slow)
    seen: list[int] = []
    asking = threading.Thread(target=lambda: seen.append(served.get(f"/admin/{ADMIN}")))
    asking.start()
    assert begun.wait(5)
    start = time.monotonic()
    assert served.get(served.site.path(1, "/consent")) == 200
    assert time.monotonic() - start < 0.8
    asking.join()
    assert seen == [200]


def test_the_admin_page_is_made_when_votes_have_changed_and_not_too_often(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    made: list[float] = []

    def slow(work: Any) -> dict[str, Any]:
        made.append(clock[0])
        clock[0] += 1.0
        return {"count": len(made)}

    monkeypatch.setattr(admin, "overview", slow)
    page = admin.Overview(site.server.work, clock=lambda: clock[0])

    def ask(at: float) -> int:
        clock[0] = at
        return int(asyncio.run(page.latest())["count"])

    assert [ask(0.0), ask(5.0), ask(15.0)] == [1, 1, 1], "nothing has changed"
    site.begin(1)
    assert ask(20.0) == 2
    site.vote(1, 1)
    assert ask(25.0) == 2, "it took a second, and takes a tenth of the time"
    assert ask(31.5) == 3
    assert ask(100.0) == 4, "who is away is seen by time alone"
