"""What the reward functions of `train.py grpo` are called with, and what they cost."""

import asyncio
from typing import Any

import pytest

from recipes.train.grpo import actions as chat_actions
from recipes.train.grpo.actions import load_actions
from recipes.train.grpo.rewards import Readings, kinds_of_edits, reward_functions
from rewards.reward_sum import RewardSum, Term
from rewriting import Exchange, UserError

EXCHANGES = [
    Exchange("help", "Fine.", extra={"topic": "loss"}),
    Exchange("I failed", "Start early. Good luck."),
]


class Watched:
    """A reward that keeps what it is called with."""

    __name__ = "watched"

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def __call__(self, completions: list[str], **columns: Any) -> list[float]:
        self.seen.append({"completions": list(completions)} | columns)
        return [1.0] * len(completions)


def functions(actions: str, reward: Any, penalty: float = 1.0) -> Any:
    terms = RewardSum({"watched": Term(reward, 0.5)})
    return reward_functions(terms, Readings(EXCHANGES, load_actions(actions)), penalty)


def test_the_reward_sees_what_the_rewriter_would_hand_out() -> None:
    watched = Watched()
    (term,) = functions("rewrites", watched)
    answers = ['I am sorry. Tell me more." And then', "no end in sight"]
    assert term.function(completions=answers, row=[1, 0]) == [1.0, 1.0]
    (seen,) = watched.seen
    assert seen["completions"] == ["I am sorry. Tell me more.", "Fine."]
    assert seen["topic"] == [None, "loss"]
    assert "sentence" not in seen


def test_edits_are_applied_and_their_sentences_told() -> None:
    watched = Watched()
    term, unparsable = functions("edits", watched, penalty=0.7)
    answers = ["INSERT 1: That hurts.\nREPLACE 2: Rest.", "I am sorry.", "KEEP", "INSERT 9: No."]
    columns = {"completions": answers, "row": [1, 1, 0, 0]}
    assert term.function(**columns) == [1.0] * 4
    (seen,) = watched.seen
    assert seen["completions"] == [
        "That hurts. Start early. Rest.",
        "Start early. Good luck.",
        "Fine.",
        "Fine.",
    ]
    assert seen["sentence"] == ["That hurts. Rest.", None, None, None]
    assert seen["seeker_post"] == ["I failed", "I failed", "help", "help"]
    assert (unparsable.name, unparsable.weight) == ("unparsable", -0.7)
    assert (term.name, term.weight) == ("watched", 0.5)
    metrics: dict[str, float] = {}
    extras: dict[str, list[str]] = {}
    logs = {"log_metric": metrics.__setitem__, "log_extra": extras.__setitem__}
    assert unparsable.function(**columns, **logs) == [0.0, 1.0, 0.0, 1.0]
    assert metrics == {"edits/inserted": 0.25, "edits/replaced": 0.25, "edits/kept": 0.25}
    assert extras["problem"] == ["", "no line is an edit", "", "there is no such sentence"]


def test_answers_are_read_once_for_all_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def whole(exchange: Exchange, answer: str) -> Any:
        read.append(answer)
        return chat_actions.Rewrite(exchange, answer), ""

    monkeypatch.setattr(chat_actions, "whole_rewrite", whole)
    terms = RewardSum({"one": Term(Watched()), "two": Term(Watched())})
    made = reward_functions(terms, Readings(EXCHANGES, load_actions("rewrites")), 1.0)
    for answers in (["a", "b"], ["c", "d"]):
        for one in made:
            one.function(completions=answers, row=[0, 1])
    assert read == ["a", "b", "c", "d"]


def test_an_async_term_stays_async() -> None:
    async def later(completions: list[str], **_: Any) -> list[float]:
        return [float(len(text)) for text in completions]

    term, _ = functions("edits", later)
    answer = term.function(completions=["KEEP", "INSERT 1: Oh."], row=[0, 0])
    assert asyncio.run(answer) == [5.0, 9.0]


def test_the_name_of_the_penalty_is_taken() -> None:
    terms = RewardSum({"unparsable": Term(Watched())})
    with pytest.raises(UserError, match="give yours another `name`"):
        reward_functions(terms, Readings(EXCHANGES, load_actions("edits")), 1.0)


def test_kinds_of_edits_count_what_cannot_be_read_as_neither() -> None:
    read = load_actions("edits").read
    outcomes = [read(EXCHANGES[0], text) for text in ("KEEP", "?", "INSERT 1: Oh.\nINSERT 2: No.")]
    kinds = kinds_of_edits(outcomes)
    assert kinds["edits/kept"] == pytest.approx(1 / 3)
    assert kinds["edits/inserted"] == pytest.approx(2 / 3)
