"""Columns of numbers that a term logs are its parts."""

from typing import Any

import pytest

from rewards.protocol import RewardError
from rewards.reward_sum import RewardSum, Term
from tests.rewards.reward_sum.toys import COLUMNS


def halves(completions: list[str], log_extra: Any, **_: Any) -> list[float]:
    log_extra("left", (len(text) // 2 for text in completions))
    log_extra("text", completions)
    log_extra("some", [None, *([1.5] * (len(completions) - 1))])
    return [float(len(text)) for text in completions]


async def later(completions: list[str], log_extra: Any, **_: Any) -> list[float]:
    log_extra("left", [7] * len(completions))
    return [0.0] * len(completions)


def test_columns_of_numbers_that_a_term_logs_are_its_parts() -> None:
    rewards = RewardSum({"length": Term(halves, 2.0), "later": Term(later, 0)})
    scores = rewards.score(**COLUMNS)
    assert scores.parts == {
        "length/left": [0.0, 1.0, 1.0],
        "length/some": [None, 1.5, 1.5],
        "later/left": [7.0, 7.0, 7.0],
    }
    assert scores.totals == [2.0, 6.0, 4.0]
    assert scores.means()["length/some"] == 1.5


def test_a_trainer_gets_the_parts_under_the_name_of_their_term() -> None:
    metrics: dict[str, float] = {}
    extra: dict[str, list[Any]] = {}
    rewards = RewardSum({"length": Term(halves), "later": Term(later)})
    rewards(**COLUMNS, log_metric=metrics.__setitem__, log_extra=extra.__setitem__)
    assert metrics["rewards/length/left/mean"] == pytest.approx(2 / 3)
    assert extra["length/text"] == COLUMNS["completions"]
    assert (extra["length/left"], extra["later/left"]) == ([0, 1, 1], [7, 7, 7])


def test_parts_of_a_term_that_compares_rows_are_those_of_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Compared:
        compares_rows = True

        def __call__(self, **columns: Any) -> list[float]:
            return halves(**columns)

    monkeypatch.setattr("rewards.reward_sum.process_index", lambda: 1)
    first = {"completions": ["aaaaaaaa"], "prompts": ["s"], "seeker_post": ["s"]}
    rewards = RewardSum({"length": Term(Compared())}, gather=lambda own: [first, own])
    scores = rewards.score(update=True, completions=["bb", "cccc"], seeker_post=["s", "s"])
    assert scores.parts["length/left"] == [1.0, 2.0]
    assert scores.totals == [2.0, 4.0]


def test_a_part_has_a_value_for_each_row() -> None:
    def short(completions: list[str], log_extra: Any, **_: Any) -> list[float]:
        log_extra("left", [1.0])
        return [0.0] * len(completions)

    with pytest.raises(RewardError, match="'short' logged 1 values of 'left' for 3 completions"):
        RewardSum({"short": Term(short)}).score(**COLUMNS)
