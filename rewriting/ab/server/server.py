"""The rating pages: personal link → consent → instructions → practice → one pair at a time.

The token of a personal link is part of every address of a rater, so there is no cookie that another
site could ride on, and the link works on any device. Raters know pairs by their place in their
own list; no address, header or page has a system's name, an item's id or its kind.
"""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from rewriting.ab.server import rating
from rewriting.ab.server.admin import Overview
from rewriting.ab.server.pages import PAGES, Pages
from rewriting.ab.server.tokens import Guesses, token_hash
from rewriting.ab.server.work import Progress, Work
from rewriting.ab.server.writer import Writer
from rewriting.ab.study.store import Store
from rewriting.ab.study.study import Study, load_study
from rewriting.web.connections import KEEP_ALIVE_SECONDS, TimedProtocol, most_connections
from rewriting.web.guard import Guard

STATIC = {"style.css": "text/css", "rate.js": "text/javascript", "admin.js": "text/javascript"}
NO_SUCH_LINK = "This link does not work. Please check it, or ask for a new one."
TOO_MANY = "Too many links that do not work. Please wait a minute."
T = TypeVar("T")
Handler = Callable[["RatingServer", Request, Progress], Awaitable[Response]]


class RatingServer:
    """A study folder on the web. `application` is the ASGI application."""

    def __init__(
        self,
        folder: Path,
        *,
        admin_token: str,
        return_after: timedelta = timedelta(hours=48),
        guesses: Guesses | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        self.study: Study = load_study(folder)
        self.work = Work(self.study, Store(folder), return_after)
        self.writer = Writer(Work(self.study, Store(folder), return_after))
        self.overview = Overview(Work(self.study, Store(folder), return_after))
        self.secret = self.work.store.setting("secret") or ""
        self.admin_hash = token_hash(admin_token)
        self.guesses = guesses or Guesses()
        self.pages = Pages(self.study)
        self.application: ASGIApp = Guard(
            Starlette(
                routes=self.routes(),
                lifespan=self.lifespan,
                exception_handlers={
                    HTTPException: self.on_error,
                    sqlite3.OperationalError: self.on_disk_error,
                },
            ),
            hosts,
        )

    def routes(self) -> list[Route]:
        def rater(path: str, handler: Handler, method: str = "GET") -> Route:
            return Route(f"/r/{{token}}{path}", self.for_rater(handler), methods=[method])

        return [
            Route("/", self.welcome),
            Route("/static/{name}", self.static),
            rater("", rating.go_on),
            rater("/consent", rating.show_consent),
            rater("/consent", rating.take_consent, "POST"),
            rater("/instructions", rating.show_instructions),
            rater("/instructions", rating.take_instructions, "POST"),
            rater("/pair/{number}", rating.show_pair),
            rater("/pair/{number}", rating.take_vote, "POST"),
            rater("/finished", rating.show_finished),
            rater("/more", rating.take_more, "POST"),
            rater("/stopped", rating.show_stopped),
            rater("/stop", rating.stop, "POST"),
            rater("/resume", rating.resume, "POST"),
            Route("/admin/{token}", self.admin),
        ]

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        self.close()

    def close(self) -> None:
        self.work.store.close()
        self.writer.close()
        self.overview.close()

    def for_rater(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            rater = self.owner(request, self.work.store.rater_of)
            return await handler(self, request, self.work.progress(rater))

        return endpoint

    def owner(self, request: Request, look_up: Callable[[str], T | None]) -> T:
        """Whose token is in the address. Unknown ones are counted, and soon not looked up."""
        address = request.client.host if request.client else ""
        hashed = token_hash(request.path_params["token"])
        if self.guesses.refused(address, hashed):
            raise HTTPException(429, TOO_MANY, {"Retry-After": str(round(self.guesses.seconds))})
        found = look_up(hashed)
        if found is None:
            self.guesses.wrong(address, hashed)
            raise HTTPException(404, NO_SUCH_LINK)
        self.guesses.right(address, hashed)
        return found

    async def welcome(self, request: Request) -> Response:
        return self.pages.message("Please open the personal link that you were sent.")

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            raise HTTPException(404)
        return FileResponse(PAGES / name, media_type=STATIC[name])

    async def admin(self, request: Request) -> Response:
        self.owner(request, lambda hashed: True if hashed == self.admin_hash else None)
        return self.pages.show("admin.html", **await self.overview.latest())

    async def on_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = "There is no such page." if error.detail == "Not Found" else error.detail
        return self.pages.message(text, status=error.status_code, headers=error.headers)

    async def on_disk_error(self, request: Request, error: Exception) -> Response:
        text = "Your answer could not be saved just now. Please try again."
        return self.pages.message(text, status=503, headers={"Retry-After": "2"})


def serve(server: RatingServer, listener: socket.socket, *, behind_proxy: bool = False) -> None:
    """Answer requests on a bound socket until interrupted."""
    TimedProtocol.limit = most_connections()
    with suppress(KeyboardInterrupt):
        asyncio.run(uvicorn.Server(settings(server, behind_proxy)).serve(sockets=[listener]))


def settings(server: RatingServer, behind_proxy: bool = False) -> uvicorn.Config:
    return uvicorn.Config(
        server.application,
        log_level="warning",
        access_log=False,  # addresses hold the personal tokens
        server_header=False,
        http=TimedProtocol,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=10,  # whoever is slow does not keep the server from ending
        backlog=128,
        proxy_headers=behind_proxy,
    )
