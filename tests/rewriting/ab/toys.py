"""A small made-up study, its folder, and a browser without a browser."""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from rewriting.ab.server.server import RatingServer
from rewriting.ab.server.tokens import Guesses, new_token, token_hash
from rewriting.ab.study.create import Design, Output, create_study
from rewriting.ab.study.store import Store
from rewriting.ab.study.study import Study, save_study

SYSTEMS = ("northwind", "southsea")
ADMIN = "admin-token-of-the-tests"
ORIGIN = "http://testserver"
TICKET = re.compile(r'name="ticket" value="([^"]+)"')


def outputs(count: int = 8, systems: tuple[str, ...] = SYSTEMS) -> dict[str, list[Output]]:
    return {
        system: [
            Output(f"exchange {n}", f"Post number {n}.", f"Answer {letter}{n}.", where=f"line {n}")
            for n in range(count)
        ]
        for system, letter in zip(systems, "PQRS", strict=False)
    }


def toy_study(count: int = 8, raters: int = 3, **settings: Any) -> Study:
    systems = settings.pop("systems", SYSTEMS)
    return create_study(outputs(count, systems), Design(raters=raters, **settings))


class Site:
    """A served toy study. `tokens` are those of its raters."""

    def __init__(
        self, folder: Path, study: Study | None = None, return_after: float = 48.0
    ) -> None:
        self.folder = folder
        self.study = study or toy_study()
        save_study(self.study, folder)
        self.store = Store(folder)
        self.tokens = {rater: new_token() for rater in self.study.raters}
        for rater, token in self.tokens.items():
            self.store.add_token(token_hash(token), rater)
        self.server = RatingServer(
            folder,
            admin_token=ADMIN,
            return_after=timedelta(hours=return_after),
            guesses=Guesses(limit=20),
            hosts=["testserver"],
        )
        self.client = TestClient(self.server.application, follow_redirects=False)

    def __enter__(self) -> "Site":
        self.client.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.__exit__(None, None, None)
        self.store.close()

    def path(self, rater: int, rest: str = "") -> str:
        return f"/r/{self.tokens[rater]}{rest}"

    def get(self, rater: int, rest: str = "") -> Any:
        return self.client.get(self.path(rater, rest))

    def post(self, rater: int, rest: str, fields: Mapping[str, str] | None = None) -> Any:
        return self.client.post(
            self.path(rater, rest), data=dict(fields or {}), headers={"Origin": ORIGIN}
        )

    def begin(self, rater: int) -> None:
        """Consent and instructions."""
        assert self.post(rater, "/consent", {"answer": "agree"}).status_code == 303
        assert self.post(rater, "/instructions").status_code == 303

    def ticket(self, rater: int, number: int) -> str:
        found = TICKET.search(self.get(rater, f"/pair/{number}").text)
        assert found
        return found[1]

    def vote(self, rater: int, number: int, answer: str = "A", **more: str) -> Any:
        """Open a pair and give the same answer to every question."""
        fields = {"ticket": self.ticket(rater, number), **answers(self.study, answer), **more}
        return self.post(rater, f"/pair/{number}", fields)

    def where(self, rater: int) -> str:
        """The page on which a rater goes on."""
        return str(self.get(rater).headers["location"]).removeprefix(self.path(rater))


def answers(study: Study, answer: str) -> dict[str, str]:
    return {f"answer-{one.name}": answer for one in study.criteria}
