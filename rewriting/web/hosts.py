"""Where a server listens, and the names that it is reached by."""

from __future__ import annotations

import socket
from contextlib import suppress
from urllib.parse import urlsplit

from rewriting.errors import UserError


def host_name(given: str) -> str:
    """The host of a name or of an address such as a browser shows; scheme and port do not count."""
    with suppress(ValueError):  # of urlsplit, and of a port that is no number
        parts = urlsplit(given.strip() if "//" in given else f"//{given.strip()}")
        name = (parts.hostname or "").removesuffix(".")
        more = (parts.path.strip("/"), parts.query, parts.fragment, parts.username, " " in name)
        if name and parts.port != 0 and not any(more):
            return name
    raise UserError(
        f"--allow-host {given!r} is no host name. Give the name alone, such as study.example.org."
    )


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, or one line about why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        reason = error.strerror or error
        raise UserError(f"cannot listen on {host}:{port}: {reason}. Try another --port.") from error
    return listener


def base_url(host: str, listener: socket.socket) -> str:
    """What the address of a page begins with, for a browser on this machine."""
    shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    shown = f"[{shown}]" if ":" in shown else shown
    return f"http://{shown}:{listener.getsockname()[1]}"
