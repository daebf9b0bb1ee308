"""Systems by name, and files of outputs that were made elsewhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

from recipes.systems import parse_systems, read_outputs, rewrites_of
from rewriting import Edit, Exchange, Rewrite, UserError

EXCHANGES = [Exchange("I failed.", "Try.", id="1"), Exchange("I moved.", "Rest.", id="2")]


def test_labels_stand_before_an_equals_sign() -> None:
    assert parse_systems("generic, warm start=runs/a/model ,out.jsonl") == {
        "generic": "generic",
        "warm start": "runs/a/model",
        "out.jsonl": "out.jsonl",
    }


def test_the_originals_and_a_policy() -> None:
    assert rewrites_of("original", EXCHANGES, seed=0) == [
        Rewrite(one, one.response_post) for one in EXCHANGES
    ]
    (first, _) = rewrites_of("generic", EXCHANGES, seed=0)
    assert first.rewritten_response == "This must have been really hard for you. Try."


def test_outputs_are_matched_by_their_posts_in_any_order(jsonl: Callable[..., Path]) -> None:
    edits = [{"operation": "insert", "position": 0, "sentence": "Oh."}]
    other = {"seeker_post": "x", "response_post": "y", "rewritten_response": "z"}
    path = jsonl(
        [
            {"id": "1", "seeker_post": "I moved.", "response_post": " Rest. "}
            | {"rewritten_response": "Oh. Rest.", "edits": edits},
            other,
            {"id": "2", "seeker_post": "I failed.", "response_post": "Try."}
            | {"rewritten_response": "Try now."},
        ]
    )
    assert rewrites_of(str(path), EXCHANGES, seed=0) == [
        Rewrite(EXCHANGES[0], "Try now."),
        Rewrite(EXCHANGES[1], "Oh. Rest.", (Edit.insert(0, "Oh."),)),
    ]


def test_outputs_without_posts_are_matched_by_id(tmp_path: Path) -> None:
    path = tmp_path / "outputs.csv"
    path.write_text("id,rewritten_response\n2,Rest well.\n1,Try now.\n")
    texts = [one.rewritten_response for one in read_outputs(path, EXCHANGES)]
    assert texts == ["Try now.", "Rest well."]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "1"}, "line 1: no rewritten_response"),
        ({"id": "1", "rewritten_response": "x"}, "lacks a rewrite of 1 of 2 .* '2'"),
        ({"id": "1", "rewritten_response": "x", "edits": [{"place": 1}]}, "line 1: no edits"),
    ],
)
def test_mistakes_are_named(jsonl: Callable[..., Path], row: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_outputs(jsonl([row]), EXCHANGES)
