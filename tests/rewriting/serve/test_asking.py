"""The JSON of a request: what is taken, what is refused, and that refusals repeat no text."""

import json
from typing import Any

import pytest

from rewriting.exchange import Exchange
from rewriting.serve.asking import Refused, parsed
from rewriting.serve.limits import Limits

LIMITS = Limits(characters=20, turns=2)
SECRET = "qwertz"


def refused(body: Any) -> Refused:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(Refused) as caught:
        parsed(raw, LIMITS)
    assert SECRET not in json.dumps(caught.value.row())
    return caught.value


def body(**changed: Any) -> dict[str, Any]:
    return {"seeker_post": SECRET, "response_post": "Try again."} | changed


def test_everything_that_can_be_asked() -> None:
    asked = parsed(json.dumps(body(history=["a", "b"], id="7", seed=3)).encode(), LIMITS)
    assert asked.exchange == Exchange(SECRET, "Try again.", id="7", history=("a", "b"))
    assert (asked.seed, asked.characters) == (3, len(SECRET) + len("Try again.") + 2)


def test_the_least_that_can_be_asked() -> None:
    asked = parsed(b'{"seeker_post": "a", "response_post": "\\u2764\\ufe0f"}', LIMITS)
    assert (asked.exchange, asked.seed) == (Exchange("a", "\u2764\ufe0f"), 0)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"seeker_post": "\xff"}',
        b"[" * 100_000,
        b'{"a":' * 5000,
        b"9" * 5000,
        b'{"seeker_post": "\\ud83d", "response_post": "a"}',
    ],
)
def test_what_is_not_json(raw: bytes) -> None:
    assert refused(raw).status == 400


@pytest.mark.parametrize("value", [None, [], "text", 7, True, [body()]])
def test_what_is_no_object(value: Any) -> None:
    assert refused(value).status == 422


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"seeker_post": None}, "seeker_post"),
        ({"seeker_post": ["a"]}, "seeker_post"),
        ({"response_post": ""}, "response_post"),
        ({"response_post": " \n\t\u200b\u00a0"}, "response_post"),
        ({"response_post": SECRET * 4}, "response_post"),
        ({"response_post": "a\0b"}, "response_post"),
        ({"history": "a"}, "history"),
        ({"history": [1]}, "history"),
        ({"history": ["a", "b", "c"]}, "history"),
        ({"history": [SECRET * 4]}, "history"),
        ({"history": [""]}, "history"),
        ({"id": 7}, "id"),
        ({"id": SECRET * 100}, "id"),
        ({"seed": "1"}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"seed": float("nan")}, "seed"),
    ],
)
def test_a_wrong_field_is_named(changed: dict[str, Any], field: str) -> None:
    error = refused(body(**changed))
    assert (error.status, error.field) == (422, field)
    assert field in error.message


def test_an_unknown_field_is_not_ignored() -> None:
    assert "Did you mean response_post?" in refused(body(response="Try again.")).message
    assert "Fields: seeker_post" in refused(body(**{SECRET * 1000: 1})).message
