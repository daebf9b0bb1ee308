"""What stands before every request: known names only, headers against inline code, no posts from
elsewhere."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

UNKNOWN_HOST = (
    "This server does not know itself by this name. Whoever runs it can add the name with "
    "--allow-host."
)
OTHER_SITE = "This request came from another site."
LONGEST_BODY = 64 * 1024
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # "no-referrer" would be stricter, but makes browsers send "Origin: null" with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
}


class Guard:
    """Wraps the application: refuses names that are not ours and posts of other sites, adds the
    headers to every answer.

    hosts: names that this server is reached by, beside those that `known_host` knows itself.
    programs: whether posts of programs are taken too, which send neither header of a browser. A
    page of another site cannot leave them out. refuse: (text, status) → the answer of a refusal.
    """

    def __init__(
        self,
        application: ASGIApp,
        hosts: Collection[str] = (),
        *,
        programs: bool = False,
        refuse: Callable[[str, int], Response] = PlainTextResponse,
    ) -> None:
        self.application = application
        self.hosts = {name.lower() for name in hosts}
        self.programs = programs
        self.refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        if not known_host(headers, self.hosts):
            await self.refuse(UNKNOWN_HOST, 421)(scope, receive, send_guarded)
        elif scope["method"] not in SAFE_METHODS and not self.ours(headers):
            await self.refuse(OTHER_SITE, 403)(scope, receive, send_guarded)
        else:
            await self.application(scope, receive, send_guarded)

    def ours(self, headers: Headers) -> bool:
        """Whether a post may be taken: from a page of this server, or from a program."""
        no_browser = "sec-fetch-site" not in headers and "origin" not in headers
        return (self.programs and no_browser) or same_origin(headers)


def known_host(headers: Headers, hosts: Collection[str]) -> bool:
    """Whether the request was sent to a name of this server.

    A page of another site can point its own name at this machine and read our answers as its own
    (DNS rebinding). It cannot do so with an address, with localhost or with this machine's name.
    """
    try:
        (host,) = headers.getlist("host")
        name = (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return False
    return name in {"localhost", socket.gethostname().lower(), *hosts} or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def same_origin(headers: Headers) -> bool:
    """Whether a browser says that a page of this server sent the request.

    Browsers send Sec-Fetch-Site where the connection is trusted (HTTPS or this machine), which no
    page can forge and no proxy changes; elsewhere, Origin. What sends neither is no browser with
    one of our pages open, and is refused as well.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        return site == "same-origin"
    try:
        host = urlsplit(origin or "").netloc
    except ValueError:
        return False
    return bool(host) and host.lower() == headers.get("host", "").lower()


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form. Where a field is given twice, the last value counts.

    Read here because `request.form()` needs one more package and would accept files.
    """
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "This page takes forms only.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_BODY:
            raise HTTPException(413, "This form is too long.")
    try:
        fields = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=100
        )
    except ValueError as error:
        raise HTTPException(400, "This form cannot be read.") from error
    return dict(fields)
