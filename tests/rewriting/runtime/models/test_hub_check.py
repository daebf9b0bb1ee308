"""The hub is asked once, and says in one line that it has not got something."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from rewriting.errors import UserError
from rewriting.runtime.models import hub_check, named


class Hub(BaseHTTPRequestHandler):
    """Knows org/model; of everything else it says that there is no such thing."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        known = self.path.startswith("/api/models/org/model")
        content = b'{"id": "org/model"}' if known else b"{}"
        self.send_response(200 if known else 404)
        if not known:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests that come to a hub of our own."""
    for switch in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(switch, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    from huggingface_hub import HfApi

    monkeypatch.setattr(HfApi.__init__, "__defaults__", (endpoint, *[None] * 5))
    monkeypatch.setattr(Hub, "asked", [])
    hub_check._asked.cache_clear()
    yield Hub.asked
    server.shutdown()
    server.server_close()
    hub_check._asked.cache_clear()


def test_what_the_hub_has_is_asked_for_once(asked: list[str]) -> None:
    assert hub_check.hub_problem("org/model") == ""
    named.check_model("org/model")
    assert asked == ["/api/models/org/model"]


def test_what_the_hub_has_not_is_one_line(asked: list[str]) -> None:
    for _ in range(2):
        with pytest.raises(UserError, match=r"'org/other' .* \(it has no such model") as error:
            named.check_model("org/other")
        assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="org/other"):
        named.load_config("org/other")
    assert asked == ["/api/models/org/other"]
    problem = hub_check.hub_problem("org/model", "dataset")
    assert problem == "it has no such dataset, or a private one"


def test_a_hub_that_is_switched_off_is_not_asked(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="the hub is switched off"):
        named.check_model("org/model")
    assert asked == []


def test_an_impossible_name_is_said(asked: list[str]) -> None:
    assert hub_check.hub_problem("org/--") == "it is no name that the hub could have"
    assert asked == []
