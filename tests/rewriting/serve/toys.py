"""A desk without models, and a server around it: on a port, or without one."""

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from starlette.testclient import TestClient

from rewriting.changes import changes
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.serve.limits import Limits
from rewriting.serve.logs import Log
from rewriting.serve.server import RewritingServer, settings
from tests.rewriting.listening import Listening

KIND = "That must hurt."
POST = {"seeker_post": "I failed the exam again.", "response_post": "Start earlier next time."}
HELP = "Call somebody."
TOKEN = "a-token-of-the-tests"


class FakeDesk:
    """Puts a kind sentence in front of every reply; finds empathy in it, and a crisis by a word.

    before: called with the exchanges of every batch, to wait or to fail.
    """

    help_text = HELP

    def __init__(self, before: Callable[[Sequence[Exchange]], None] = lambda _: None) -> None:
        self.before = before
        self.batches: list[tuple[str, int]] = []

    @property
    def about(self) -> dict[str, Any]:
        term = {"weight": 1.0, "about": "Longer is better."}
        return {"policy": "fake", "version": "0", "rewards": {"length": term}}

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[dict[str, Any]]:
        self._begin("rewrite", exchanges)
        return [self._rewritten(one, seed) for one in exchanges]

    def score(self, exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
        self._begin("score", exchanges)
        return [
            one.row()
            | {name: judged(one)["level"] for name in MECHANISMS}
            | {"probabilities": {name: [1.0, 0.0, 0.0] for name in MECHANISMS}}
            | {"empathy": 3 * judged(one)["level"]}
            | {"rationales": dict.fromkeys(MECHANISMS, judged(one)["rationales"])}
            | found(one)
            for one in exchanges
        ]

    def feedback(self, exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
        self._begin("feedback", exchanges)
        said = {"found": "There it is.", "missing": "Say more.", "example": "I feel with you."}
        return [
            {"id": one.id, "empathy": 3 * judged(one)["level"]}
            | dict.fromkeys(MECHANISMS, judged(one) | said)
            | found(one)
            for one in exchanges
        ]

    def _begin(self, name: str, exchanges: Sequence[Exchange]) -> None:
        self.batches.append((name, len(exchanges)))
        self.before(exchanges)

    def _rewritten(self, one: Exchange, seed: int) -> dict[str, Any]:
        held = verdict(one)["verdict"] != "clear"
        texts = [f"{KIND} {one.response_post}", f"Why (seed {seed})? {one.response_post}"]
        texts = [one.response_post] if held else [*texts, one.response_post]
        candidates = [candidate(one.response_post, text) for text in texts]
        return (
            {"id": one.id, "seeker_post": one.seeker_post, "response_post": one.response_post}
            | candidates[0]
            | {"safety": verdict(one), "policy": "fake", "seed": seed, "ai_assisted": True}
            | {"alternatives": candidates[1:]}
        )


def candidate(before: str, after: str) -> dict[str, Any]:
    return {
        "rewritten_response": after,
        "edits": [{"operation": "insert", "position": 0, "sentence": after.partition(".")[0]}],
        "rewards": {"length": float(len(after)), "other": None},
        "changes": [change.row() for change in changes(before, after)],
    }


def judged(one: Exchange) -> dict[str, Any]:
    there = KIND in one.response_post
    return {"level": int(there), "rationales": [KIND] if there else []}


def found(one: Exchange) -> dict[str, Any]:
    start = one.response_post.find(KIND)
    spans = [[start, start + len(KIND)]] if start >= 0 else []
    return {"spans": dict.fromkeys(MECHANISMS, spans), "safety": verdict(one)}


def verdict(one: Exchange) -> dict[str, Any]:
    if "die" in one.seeker_post:
        return {"verdict": "crisis", "reasons": ['explicit: "die"'], "help": HELP}
    return {"verdict": "clear", "reasons": []}


class Site:
    """A server of a fake desk, asked without a port. `logged` are the lines of its log."""

    def __init__(
        self,
        desk: FakeDesk | None = None,
        *,
        limits: Limits | None = None,
        token: str | None = None,
        texts: bool = False,
    ) -> None:
        self.desk, self.stream = desk or FakeDesk(), io.StringIO()
        self.server = RewritingServer(
            self.desk,
            Log(self.stream, texts=texts),
            limits=limits or Limits(per_minute=0),
            token=token,
            hosts=["testserver"],
        )
        self.client = TestClient(self.server.application, raise_server_exceptions=False)

    def __enter__(self) -> "Site":
        self.client.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.__exit__(None, None, None)

    def post(self, path: str = "/rewrite", body: Any = POST, **options: Any) -> Any:
        return self.client.post(path, json=body, **options)

    @property
    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


class Served(Listening):
    """The same on a port of this machine."""

    def __init__(self, site: Site) -> None:
        super().__init__(settings(site.server))
        self.site = site
        self.base = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "Served":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
