"""What a request asks for: its JSON, read within bounds. No error repeats a text of the request."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from rewriting.exchange import Exchange
from rewriting.runtime.files.json_files import parse_json
from rewriting.serve.limits import Limits

if TYPE_CHECKING:
    from starlette.requests import Request

FIELDS: Final = ("seeker_post", "response_post", "history", "id", "seed")
LONGEST_ID: Final = 200
LARGEST_SEED: Final = 2**63 - 1
JSON: Final = "application/json"


class Refused(Exception):
    """A request that is not taken: the status, a sentence, and the field that is wrong, if any."""

    def __init__(self, status: int, message: str, field: str = "", retry_after: int = 0) -> None:
        super().__init__(message)
        self.status, self.message, self.field = status, message, field
        self.retry_after = retry_after

    def row(self) -> dict[str, str]:
        return {"error": self.message} | ({"field": self.field} if self.field else {})


@dataclass(frozen=True, slots=True)
class Asked:
    """An exchange to work on, and the seed of what is sampled."""

    exchange: Exchange
    seed: int = 0

    @property
    def characters(self) -> int:
        one = self.exchange
        return len(one.seeker_post) + len(one.response_post) + sum(map(len, one.history))


async def read_asked(request: Request, limits: Limits) -> Asked:
    """What a request asks for; `Refused` where it cannot be told, or is too much."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != JSON:  # a page of another site could send any other kind without being asked
        raise Refused(415, f"Send JSON, with the header Content-Type: {JSON}.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "Send the JSON as it is, without compression.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.body:
            raise Refused(413, f"A request has {limits.body:,} bytes at the most.")
    return parsed(body, limits)


def parsed(body: bytes, limits: Limits) -> Asked:
    """The body of a request."""
    try:
        value = parse_json(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Refused(400, "The request is not UTF-8.") from error
    except ValueError as error:
        raise Refused(400, "The request is not JSON that can be read.") from error
    if not isinstance(value, dict):
        raise Refused(422, "The request is not a JSON object.")
    for name in value:
        if name not in FIELDS:
            close = get_close_matches(name[:40], FIELDS, n=1)
            hint = f"Did you mean {close[0]}?" if close else f"Fields: {', '.join(FIELDS)}."
            raise Refused(422, f"There is a field that is not known. {hint}")
    exchange = Exchange(
        _text(value, "seeker_post", limits.characters),
        _text(value, "response_post", limits.characters),
        id=_id(value),
        history=_history(value, limits),
    )
    return Asked(exchange, _seed(value))


def _text(value: Mapping[str, Any], name: str, longest: int) -> str:
    text = value.get(name)
    if not isinstance(text, str):
        raise Refused(422, f"{name} is missing, or no text.", name)
    return _checked(text, name, longest)


def _checked(text: str, name: str, longest: int) -> str:
    if len(text) > longest:
        message = f"{name} has {len(text):,} characters; the most is {longest:,}."
        raise Refused(422, message, name)
    if all(unicodedata.category(letter)[0] in "CZ" for letter in text):
        raise Refused(422, f"{name} is blank.", name)
    if "\0" in text:
        raise Refused(422, f"{name} holds a null character.", name)
    return text


def _history(value: Mapping[str, Any], limits: Limits) -> tuple[str, ...]:
    turns = value.get("history") or []
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise Refused(422, "history is a list of texts, the oldest first.", "history")
    if len(turns) > limits.turns:
        message = f"history has {len(turns):,} turns; the most is {limits.turns}."
        raise Refused(422, message, "history")
    return tuple(_checked(turn, "history", limits.characters) for turn in turns)


def _id(value: Mapping[str, Any]) -> str:
    found = value.get("id", "")
    if not isinstance(found, str) or len(found) > LONGEST_ID:
        raise Refused(422, f"id is a text of {LONGEST_ID} characters at the most.", "id")
    return found


def _seed(value: Mapping[str, Any]) -> int:
    seed = value.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_SEED:
        raise Refused(422, "seed is a whole number of 0 or more.", "seed")
    return seed
