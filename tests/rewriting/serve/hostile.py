"""Malformed, oversized, broken-off and hostile requests by the thousand, drawn from a seed.

    python -m tests.rewriting.serve.hostile [--requests 10000] [--seed 0]

Each is written to a socket of a real server. It ends well with an answer below 500, or with a
connection that the server closed. A good request in between is answered right; no text, path or
header of a request is in the log; nothing is raised inside the server. There are no models behind
it: what strange texts do to those is in tests/recipes/commands/test_serve.py. The test suite sends
some hundreds.
"""

import argparse
import http.client
import io
import json
import logging
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from rewriting.serve.limits import Limits
from rewriting.web.connections import TimedProtocol
from tests.mutations.bytes import HOSTILE, mutated
from tests.rewriting.serve.toys import KIND, FakeDesk, Served, Site

CANARY = "zqcanaryqz"
"""A part of every text, path and header that is sent; it must not be logged."""
CLIENTS = 16
UVICORN = logging.getLogger("uvicorn")
LIMITS = Limits(per_minute=0, seconds=20, characters=400, body=20_000)
STRANGE = (
    "", " ", "\u200b", "\0", "a\0b", "\u202e", "\ufeff", "\x07\x1b[2J", "😀" * 50, "é" * 399,
    "e\u0301" * 150, "." * 300, "?!" * 150, "\n" * 200, "- a\n" * 80, "x" * 400, "x" * 401,
    "word " * 80, "http://a.b/" * 30, "<script>alert(1)</script>", "{{ 7 * 7 }}", "%s%n%x",
    "${jndi:ldap://x}", "'; DROP TABLE x; --", "A. " * 130, "你好。" * 60, "مرحبا " * 50,
    "<|endoftext|>", "[INST] rewrite [/INST]", "</s>", "[SEP] [MASK] [CLS]",
)  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "P\tT", "")
PATHS = ("/", "/rewrite", "/score", "/feedback", "/health", "/openapi.json", "/static/page.js")
ODD_PATHS = (
    "/static/../../pyproject.toml", "/static/%2e%2e%2fserver.py", "//", "/%00", "/%ff", "/\x7f",
    "*", "http://elsewhere.example/", "/rewrite/", "/rewrite?x=1", "/" + "a" * 9000, "rewrite", "",
)  # fmt: skip
HEADERS = (
    "Host: elsewhere.example", "Host: ", "Host: [::1", "Host: 127.0.0.1\r\nHost: b", "Origin: null",
    "Origin: https://elsewhere.example", "Sec-Fetch-Site: cross-site", "Content-Type: text/plain",
    "Content-Type: application/json\x00", "Content-Length: -1", "Content-Length: 1, 2",
    "Content-Length: 99999999999999999999", "Content-Length: abc", "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3",
    "Expect: 100-continue", "Upgrade: websocket\r\nConnection: Upgrade", "Connection: keep-alive",
    "Content-Encoding: gzip", "Authorization: Bearer \xff\xfe", "X-Forwarded-For: 1.2.3.4",
    "X" * 9000 + ": a", "X: " + "a" * 70_000, ": a", "no colon", " folded: a",
    "Cookie: " + "a=b; " * 900, "Range: bytes=0-0,-1", "Accept-Encoding: gzip",
)  # fmt: skip


@dataclass(frozen=True)
class Sent:
    """The bytes of a request, and what has to be the answer where it is a good one."""

    raw: bytes
    expected: str | None = None


def draw(chance: random.Random) -> Sent:
    """One request."""
    kinds: list[Callable[[random.Random], Sent]] = [
        good, strange_texts, wrong_fields, broken_json, broken_json, odd_head, odd_head, damaged,
        broken_off, noise,
    ]  # fmt: skip
    return chance.choice(kinds)(chance)


def body_of(chance: random.Random) -> dict[str, Any]:
    number = chance.randrange(10**9)
    post = {"seeker_post": f"{CANARY} post {number}.", "response_post": f"{CANARY} reply {number}."}
    return post | {"id": f"{CANARY} {number}"}


def request(
    body: bytes,
    *more: str,
    path: str = "/rewrite",
    method: str = "POST",
    kind: str = "Content-Type: application/json",
) -> bytes:
    own = {line.partition(":")[0].lower() for line in more}
    usual = ("Host: 127.0.0.1", kind, f"Content-Length: {len(body)}", "Connection: close")
    lines = [f"{method} {path} HTTP/1.1", *more]
    lines += [line for line in usual if line.partition(":")[0].lower() not in own]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def good(chance: random.Random) -> Sent:
    body = body_of(chance)
    return Sent(request(json.dumps(body).encode()), f"{KIND} {body['response_post']}")


def strange_texts(chance: random.Random) -> Sent:
    """Texts that are allowed, or hardly."""
    body = body_of(chance)
    for name in ("seeker_post", "response_post"):
        if chance.random() < 0.7:
            body[name] = chance.choice(STRANGE) + chance.choice(("", CANARY, "\n"))
    if chance.random() < 0.3:
        body["history"] = [chance.choice(STRANGE) for _ in range(chance.randrange(25))]
    raw = json.dumps(body, ensure_ascii=chance.random() < 0.5).encode()
    return Sent(request(raw, path=chance.choice(PATHS[1:4])))


def wrong_fields(chance: random.Random) -> Sent:
    values: list[Any] = [None, True, -1, 1.5, 10**400, "", CANARY, [], {}, [[]], {"a": CANARY}]
    body = body_of(chance)
    names = [*body, "history", "seed", CANARY, "", "response", "__proto__"]
    for _ in range(chance.randrange(1, 4)):
        body[chance.choice(names)] = chance.choice(values)
    if chance.random() < 0.3:
        body.pop(chance.choice(list(body)))
    return Sent(request(json.dumps(body).encode(), path=chance.choice(PATHS[1:4])))


def broken_json(chance: random.Random) -> Sent:
    body = mutated(json.dumps(body_of(chance)).encode(), chance)
    if chance.random() < 0.2:
        body = chance.choice((b"", chance.choice(HOSTILE), body * 200))
    return Sent(request(body, path=chance.choice(PATHS[1:4])))


def odd_head(chance: random.Random) -> Sent:
    """Methods, paths and headers that are odd, or each of them fine but not together."""
    body = json.dumps(body_of(chance)).encode() if chance.random() < 0.6 else b""
    more = [f"X-Mine: {CANARY}", *chance.sample(HEADERS, chance.randrange(0, 3))]
    path = chance.choice(PATHS if chance.random() < 0.5 else ODD_PATHS)
    if chance.random() < 0.3:
        path += f"?{CANARY}"
    return Sent(request(body, *more, path=path, method=chance.choice(METHODS)))


def damaged(chance: random.Random) -> Sent:
    """A good request, its bytes changed anywhere."""
    return Sent(mutated(request(json.dumps(body_of(chance)).encode()), chance))


def broken_off(chance: random.Random) -> Sent:
    """A good request that ends too early, so that the server waits for the rest."""
    raw = request(json.dumps(body_of(chance)).encode())
    return Sent(raw[: chance.randrange(len(raw))] if chance.random() < 0.2 else raw[:-1] + b"}}")


def noise(chance: random.Random) -> Sent:
    openings = (b"", b"\x16\x03\x01\x02", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n\r\n", b"GET")
    return Sent(
        chance.choice(openings) + chance.randbytes(chance.choice((3, 40, 900))) + b"\r\n\r\n"
    )


def ended(port: int, sent: Sent) -> str:
    """Write a request, read its answer, say how it ended; AssertionError where that is wrong."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        try:
            client.sendall(sent.raw)
            answer = http.client.HTTPResponse(client, method=sent.raw[:4].decode("latin-1"))
            answer.begin()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            assert sent.expected is None, "a good request was not answered"
            return "closed"
    assert 200 <= answer.status < 500, f"{answer.status}: {text[:200]!r}"
    if sent.expected is not None:
        assert answer.status == 200, f"{answer.status} to a good request: {text[:200]!r}"
        assert json.loads(text)["rewritten_response"] == sent.expected, "somebody else's answer"
    return str(answer.status)


@contextmanager
def impatient() -> Iterator[None]:
    """Wait for the rest of a request for a second only."""
    with patch.object(TimedProtocol, "request_seconds", 1.0):
        yield


@contextmanager
def everything_logged(stream: io.StringIO) -> Iterator[None]:
    """Copy what libraries log to a stream; uvicorn's loggers do not tell the root's handlers."""
    handler, loggers = logging.StreamHandler(stream), [logging.getLogger(), UVICORN]
    for logger in loggers:
        logger.addHandler(handler)
    yield
    for logger in loggers:
        logger.removeHandler(handler)


def run(count: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """How many requests ended in which way, and what went wrong, with the seed to see it again."""
    site = Site(FakeDesk(), limits=LIMITS)
    errors, wrong = io.StringIO(), []

    def one(number: int) -> str:
        try:
            return ended(served.port, draw(random.Random(f"request {number}")))
        except AssertionError as error:
            wrong.append(f"request {number}: {error}")
            return "WRONG"

    with (
        impatient(),
        Served(site) as served,
        everything_logged(errors),
        ThreadPoolExecutor(CLIENTS) as clients,
    ):
        ways = Counter(clients.map(one, range(seed, seed + count)))
    written = site.stream.getvalue() + errors.getvalue()
    wrong += [f"logged: {line}" for line in written.splitlines() if CANARY in line]
    wrong += [f"failed: {line}" for line in written.splitlines() if '"failure"' in line]
    wrong += [f"raised: {line}" for line in errors.getvalue().splitlines() if "Traceback" in line]
    return ways, wrong


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first request")
    options = parser.parse_args()
    start = time.monotonic()
    ways, wrong = run(options.requests, options.seed)
    shown = ", ".join(f"{way} {number:,}" for way, number in sorted(ways.items()))
    print(f"{options.requests:,} requests in {time.monotonic() - start:,.0f} s: {shown}")
    print("\n".join(wrong[:10]), file=sys.stderr)
    print(f"{len(wrong):,} went wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
