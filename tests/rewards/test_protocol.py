"""What a reward may answer, and what an error about it says."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from rewards.protocol import RewardError, called, checked, guarded, is_async, name_of, texts
from rewriting.errors import UserError

COLUMNS = {
    "completions": ["first reply", "second reply " * 20],
    "seeker_post": ["I failed.", "Nobody calls."],
    "response_post": ["Oh.", "Call them."],
}


def shorter(completions: list[str], response_post: list[str], **_: Any) -> list[float]:
    return [len(r) - len(c) for c, r in zip(completions, response_post, strict=True)]


async def patient(completions: list[str], **_: Any) -> list[float]:
    await asyncio.sleep(0)
    return [1.0] * len(completions)


class Patient:
    async def __call__(self, **columns: Any) -> list[float]:
        return await patient(**columns)


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5],
        (1, 2.5),
        iter([1.0, 2.5]),
        np.array([1.0, 2.5]),
        torch.tensor([1.0, 2.5]),
        [np.float32(1), torch.tensor(2.5)],
        [True, 2.5],
    ],
)
def test_numbers_of_every_make_become_floats(values: Any) -> None:
    found = checked("mine", values, COLUMNS)
    assert found == [1.0, 2.5]
    assert [type(value) for value in found] == [float, float]


def test_none_stays_none() -> None:
    assert checked("mine", [None, 0.0], COLUMNS) == [None, 0.0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        ("0.5", "'0.5'"),
        ([0.5], r"\[0.5\]"),
        (1j, "1j"),
        (np.array([1.0, 2.0]), r"array\(\[1., 2.\]\)"),
        (torch.tensor(float("nan")), r"tensor\(nan\)"),
    ],
)
def test_a_bad_value_is_shown_with_its_row(value: Any, shown: str) -> None:
    with pytest.raises(RewardError, match=f"reward 'mine' gave {shown} for row 1") as caught:
        checked("mine", [0.0, value], COLUMNS)
    message = str(caught.value)
    assert "Row 1: completion 'second reply second reply" in message
    assert "seeker_post 'Nobody calls.', response_post 'Call them.'." in message
    assert len(message) < 400
    assert "\n" not in message


@pytest.mark.parametrize(("values", "row"), [([], 0), ([1.0], 1), ([1.0, 2.0, 3.0], 1)])
def test_a_wrong_length_shows_the_first_row_without_a_value(values: list[float], row: int) -> None:
    expected = f"'mine' gave {len(values)} values for 2 completions.*Row {row}: completion"
    with pytest.raises(RewardError, match=expected):
        checked("mine", values, COLUMNS)


def test_a_value_for_no_row_is_one_too_many() -> None:
    with pytest.raises(RewardError, match=r"gave 1 values for 0 completions.*There are no rows"):
        checked("mine", [1.0], {"completions": []})


@pytest.mark.parametrize("values", [0.5, None, "ab", b"ab", {"a": 1, "b": 2}, {1.0, 2.0}])
def test_what_is_no_list_is_refused(values: Any) -> None:
    with pytest.raises(RewardError, match=r"'mine' gave .* for 2 completions; it must give a list"):
        checked("mine", values, COLUMNS)


def test_an_exception_is_chained_named_and_placed() -> None:
    def broken(completions: list[str], **_: Any) -> list[float]:
        return [1 / 0 for _ in completions]

    with pytest.raises(RewardError, match="reward 'mine' raised ZeroDivisionError: ") as caught:
        called("mine", broken, COLUMNS)
    assert isinstance(caught.value, UserError)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "test_protocol.py, line " in str(caught.value)
    assert "First row of its batch: Row 0: completion 'first reply'" in str(caught.value)


def test_a_reward_that_takes_too_few_keywords_is_told_how_to_take_the_rest() -> None:
    def bare(completions: list[str]) -> list[float]:
        return [0.0] * len(completions)

    with pytest.raises(RewardError, match=r"TypeError: .* leaves the keywords .* to `\*\*_`"):
        called("bare", bare, COLUMNS)


def test_a_missing_column_says_which_there_are() -> None:
    def needs_topic(completions: list[str], topic: list[str], **_: Any) -> list[float]:
        return []

    with pytest.raises(RewardError, match=r"'topic'.*columns of this batch: completions, seeker"):
        called("mine", needs_topic, COLUMNS)


def test_a_users_mistake_inside_a_term_stays_one_line() -> None:
    def unfit(**_: Any) -> list[float]:
        raise UserError("the data has no column topic.")

    with pytest.raises(RewardError, match=r"^reward 'mine': the data has no column topic\.$"):
        called("mine", unfit, COLUMNS)


def test_names_are_found_as_trl_finds_them() -> None:
    from trl.trainer.utils import get_callable_name, is_async_callable

    for reward in (shorter, partial(shorter, factor=2), Patient(), patient, partial(patient, a=1)):
        assert name_of(reward) == get_callable_name(reward)
        assert is_async(reward) == is_async_callable(reward)


def test_texts_of_conversations() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    completions = [
        "plain",
        [{"role": "assistant", "content": "hello"}],
        [{"role": "assistant", "content": parts}, {"role": "tool", "content": "7"}],
        [{"role": "assistant", "content": None}],
        [],
    ]
    assert texts(completions) == ["plain", "hello", "ab", "", ""]
    with pytest.raises(TypeError, match="not 3"):
        texts([3])


def test_guarding_keeps_name_and_values() -> None:
    guard = guarded(shorter)
    assert guard.__name__ == "shorter"
    assert not is_async(guard)
    assert guard(**COLUMNS) == shorter(**COLUMNS)
    assert guarded(shorter, "brevity").__name__ == "brevity"


def test_what_a_guarded_reward_logs_has_its_name() -> None:
    def logs(completions: list[str], log_extra: Any, **_: Any) -> list[float]:
        if log_extra is not None:
            log_extra("length", [len(text) for text in completions])
        return [0.0] * len(completions)

    extra: dict[str, list[int]] = {}
    guarded(logs)(completions=["a", "bb"], log_extra=extra.__setitem__)
    assert extra == {"logs/length": [1, 2]}
    assert guarded(logs)(completions=["a"], log_extra=None) == [0.0]


@pytest.mark.parametrize("reward", [patient, Patient()])
def test_guarding_an_async_reward_leaves_it_async(reward: Callable[..., Any]) -> None:
    guard = guarded(reward)
    assert is_async(guard)
    assert asyncio.run(guard(**COLUMNS)) == [1.0, 1.0]


def test_guarding_catches_what_an_async_reward_does_wrong() -> None:
    async def broken(**_: Any) -> list[float]:
        raise OSError("connection refused")

    async def wrong(**_: Any) -> list[float]:
        return [float("nan"), 0.0]

    with pytest.raises(RewardError, match="'broken' raised OSError: connection refused"):
        asyncio.run(guarded(broken)(**COLUMNS))
    with pytest.raises(RewardError, match="'wrong' gave nan for row 0"):
        asyncio.run(guarded(wrong)(**COLUMNS))


def test_a_plain_function_that_gives_something_to_await_is_waited_for() -> None:
    assert guarded(lambda **columns: patient(**columns))(**COLUMNS) == [1.0, 1.0]
