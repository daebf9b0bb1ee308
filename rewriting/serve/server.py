"""The server: POST /rewrite, /score and /feedback, GET /health, /openapi.json and the page.

A request passes, in this order: the log, the guard (names of this server, no posts of other sites),
the rate of its address, the token, the limits of its JSON. Then it waits for the models with others
of its kind, and is answered in a batch.
"""

from __future__ import annotations

import asyncio
import hmac
import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

import uvicorn
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rewriting.exchange import Exchange
from rewriting.serve.asking import Asked, Refused, read_asked
from rewriting.serve.batching import Answered, Batcher, TooMany
from rewriting.serve.limits import Limits, RateLimit
from rewriting.serve.logs import Log, Logged, note
from rewriting.serve.openapi import openapi
from rewriting.web.connections import KEEP_ALIVE_SECONDS, TimedProtocol, most_connections
from rewriting.web.guard import Guard

PAGE: Final = Path(__file__).parent / "page"
STATIC: Final = {
    "style.css": "text/css",
    "page.js": "text/javascript",
    "pieces.js": "text/javascript",
}
ENDPOINTS: Final = ("rewrite", "score", "feedback")
FAILED = "Something went wrong here. It was logged under the number in X-Request-Id."
NO_TOKEN = "This server asks for a token: Authorization: Bearer TOKEN."
WHOLE_PAGE: Final = 5.0  # seconds beyond a request's own that a connection may take


class Desk(Protocol):
    """What works on the exchanges of a batch, always behind the safety gate. One thread calls it.

    about: what /health tells of it: the policy, the rewards. help_text: whom to call in need.
    """

    @property
    def help_text(self) -> str: ...

    @property
    def about(self) -> Mapping[str, Any]: ...

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> Sequence[dict[str, Any]]: ...

    def score(self, exchanges: Sequence[Exchange]) -> Sequence[dict[str, Any]]: ...

    def feedback(self, exchanges: Sequence[Exchange]) -> Sequence[dict[str, Any]]: ...


class RewritingServer:
    """A desk on the web. `application` is the ASGI application.

    token: what clients have to show, if anything. hosts: names that the server is reached by.
    """

    def __init__(
        self,
        desk: Desk,
        log: Log,
        *,
        limits: Limits | None = None,
        token: str | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        self.desk, self.log, self.token = desk, log, token
        self.limits = limits or Limits()
        self.rate = RateLimit(self.limits.per_minute)
        self.page = render_page(desk.help_text, self.limits)
        self.batcher: Batcher
        site = Starlette(
            routes=self.routes(),
            lifespan=self.lifespan,
            exception_handlers={
                Refused: self.on_refused,
                ClientDisconnect: self.on_gone,
                HTTPException: self.on_http_error,
                Exception: self.on_failure,
            },
        )
        guard = Guard(site, hosts, programs=True, refuse=refused)
        self.application: ASGIApp = Logged(guard, log)

    def routes(self) -> list[Route]:
        posts = [Route(f"/{name}", self.endpoint(name), methods=["POST"]) for name in ENDPOINTS]
        return [
            Route("/", self.show_page),
            Route("/static/{name}", self.static),
            Route("/health", self.health),
            Route("/openapi.json", self.describe),
            *posts,
        ]

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        limits = self.limits
        self.batcher = Batcher(self.work, largest=limits.batch, most_waiting=limits.waiting)
        self.batcher.start()
        yield
        await self.batcher.close()
        self.log.write("stopped")

    def work(self, kind: tuple[str, int], exchanges: Sequence[Exchange]) -> Sequence[Any]:
        """A batch of one kind, in the thread of the models."""
        name, seed = kind
        if name == "rewrite":
            return self.desk.rewrite(exchanges, seed=seed)
        return self.desk.score(exchanges) if name == "score" else self.desk.feedback(exchanges)

    def endpoint(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            note(request, route=name)
            self.check_client(request)
            asked = await read_asked(request, self.limits)
            note(request, characters=asked.characters)
            seed = asked.seed if name == "rewrite" else 0
            found = await self.answered(request, (name, seed), asked)
            facts = {"batch": found.batch, "waited_ms": ms(found.waited), "ms": ms(found.worked)}
            note(request, verdict=found.answer["safety"]["verdict"], **facts)
            if self.log.texts:
                note(request, asked=asked.exchange.row(), answer=found.answer)
            return JSONResponse(found.answer)

        return answer

    def check_client(self, request: Request) -> None:
        """Refuse a client that asks too often, or has no token where one is needed."""
        wait = self.rate.seconds_to_wait(request.client.host if request.client else "")
        if wait:
            message = f"Too many requests: {self.limits.per_minute} a minute are taken."
            raise Refused(429, message, retry_after=math.ceil(wait))
        if self.token is not None:
            kind, _, given = request.headers.get("authorization", "").partition(" ")
            same = hmac.compare_digest(given.strip().encode(), self.token.encode())
            if kind.lower() != "bearer" or not same:
                raise Refused(401, NO_TOKEN)

    async def answered(self, request: Request, kind: tuple[str, int], asked: Asked) -> Answered:
        """Wait for the models, but not longer than the client does."""
        work = asyncio.ensure_future(self.batcher.ask(kind, asked.exchange))
        gone = asyncio.ensure_future(disconnected(request))
        try:
            done, _ = await asyncio.wait(
                {work, gone}, timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if work in done:
                return work.result()
        except TooMany as error:
            raise Refused(503, "The server is busy. Please try again.", retry_after=5) from error
        finally:
            work.cancel()
            gone.cancel()
        if gone in done:
            raise ClientDisconnect
        message = f"No answer within {self.limits.seconds:g} seconds. Please try again."
        raise Refused(503, message, retry_after=10)

    async def show_page(self, request: Request) -> Response:
        note(request, route="page")
        return HTMLResponse(self.page)

    async def static(self, request: Request) -> Response:
        note(request, route="static")
        name = request.path_params["name"]
        if name not in STATIC:
            raise HTTPException(404)
        return FileResponse(PAGE / name, media_type=STATIC[name])

    async def health(self, request: Request) -> Response:
        note(request, route="health")
        facts = {"status": "ok", "waiting": self.batcher.waiting, **self.desk.about}
        return JSONResponse(facts | {"token_needed": self.token is not None})

    async def describe(self, request: Request) -> Response:
        note(request, route="openapi")
        return JSONResponse(openapi(self.limits, token=self.token is not None))

    async def on_refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        note(request, refused=error.message)
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
        if error.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(error.row(), error.status, headers)

    async def on_http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = {404: "There is no such address: see /openapi.json."}.get(
            error.status_code, error.detail
        )
        return JSONResponse({"error": text}, error.status_code, error.headers)

    async def on_gone(self, request: Request, error: Exception) -> Response:
        note(request, gone=True)
        return Response(status_code=400)  # nobody reads it

    async def on_failure(self, request: Request, error: Exception) -> Response:
        return refused(FAILED, 500)


def ms(seconds: float) -> int:
    return round(1000 * seconds)


def refused(text: str, status: int) -> Response:
    return JSONResponse({"error": text}, status)


async def disconnected(request: Request) -> None:
    """Returns when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def render_page(help_text: str, limits: Limits) -> str:
    templates = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined
    )
    return templates.get_template("index.html").render(help_text=help_text, limits=limits)


def serve(server: RewritingServer, listener: socket.socket, *, behind_proxy: bool = False) -> None:
    """Answer requests on a bound socket until interrupted."""
    with suppress(KeyboardInterrupt):
        asyncio.run(uvicorn.Server(settings(server, behind_proxy)).serve(sockets=[listener]))


def settings(server: RewritingServer, behind_proxy: bool = False) -> uvicorn.Config:
    seconds = server.limits.seconds

    class Protocol(TimedProtocol):
        limit = most_connections()
        answer_seconds = max(TimedProtocol.answer_seconds, seconds + WHOLE_PAGE)

    return uvicorn.Config(
        server.application,
        log_level="error",  # a line for every malformed request would be no JSON, and flood the log
        access_log=False,  # the log of our own says no addresses
        server_header=False,
        http=Protocol,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(seconds),  # nobody waits longer than that
        backlog=512,
        proxy_headers=behind_proxy,
    )
