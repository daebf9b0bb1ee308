"""Systems by name, and files of outputs that were made elsewhere."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from policies.named import POLICIES
from recipes.shared.systems import best_of, check_system, parse_systems, read_outputs, rewrites_of
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


class Growing:
    """Adds more words with every candidate."""

    name = "growing"

    def __init__(self) -> None:
        self.calls = 0

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        self.calls += 1
        return [Rewrite(one, one.response_post + " no" * self.calls) for one in exchanges]


def test_the_best_of_several_samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(POLICIES, "growing", Growing)
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(
        "def longer(completions, **_):\n    return [len(c) for c in completions]\n"
    )
    check_system("growing@3")
    found = rewrites_of("growing@3", EXCHANGES, seed=0, ranked_by="{own.py:longer: 1}")
    assert [one.rewritten_response for one in found] == ["Try. no no no", "Rest. no no no"]


def test_what_is_a_best_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert best_of("bank@4") == ("bank", 4)
    assert best_of("runs/me@home") == ("runs/me@home", 1)
    Path("run@4").mkdir()
    assert best_of("run@4") == ("run@4", 1)  # a folder of that name is meant
    for wrong in ("original@4", "out.jsonl@4", "@4", "partner@0"):
        with pytest.raises(UserError, match=r"best of 4 needs a policy|write POLICY@N"):
            best_of(wrong)
