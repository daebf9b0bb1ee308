"""An OpenAI-compatible server on this machine that answers as a test tells it to."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Reply:
    """One answer of the server; delay in seconds."""

    body: str | bytes = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


def completion(said: Any, top: Mapping[str, float] | None = None) -> Reply:
    """A chat completion, as the API has it. top: log-probabilities of the first token."""
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": said}}
    if top is not None:
        likeliest = [{"token": token, "logprob": value} for token, value in top.items()]
        first = {"token": next(iter(top)), "logprob": -0.1, "top_logprobs": likeliest}
        choice["logprobs"] = {"content": [first]}
    return Reply(json.dumps({"object": "chat.completion", "choices": [choice]}))


Answer = Callable[[dict[str, Any]], Reply]


class Endpoint:
    """The requests that came in, and what is answered: a list in turn, or a function of them."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.replies: list[Reply] | Answer = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.most_at_once = 0
        self.lock = threading.Lock()
        self._at_once = 0

    def reply(self, path: str, headers: Mapping[str, str], request: dict[str, Any]) -> Reply:
        with self.lock:
            self.paths.append(path)
            self.headers.append(headers)
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            replies = self.replies
            found = replies.pop(0) if isinstance(replies, list) else None
        found = found or replies(request)  # type: ignore[operator]
        time.sleep(found.delay)
        with self.lock:
            self._at_once -= 1
        return found


@contextmanager
def serving() -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"]))
            reply = endpoint.reply(self.path, dict(self.headers), json.loads(text))
            body = reply.body.encode() if isinstance(reply.body, str) else reply.body
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign] # the client gave up
    endpoint = Endpoint(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("no_proxy", "127.0.0.1")
            yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
