"""Time limits, retries and rows at once, for sync and for async rewards."""

import asyncio
import functools
import logging
from typing import Any

import pytest

from rewards.calling import CallOptions, with_options
from rewards.protocol import RewardError, compares_rows, is_async, name_of
from rewards.reward_sum import RewardSum, Term
from rewriting.errors import UserError
from tests.rewards.calling.toys import COLUMNS, LONG, Judge, scored


def test_without_options_a_reward_is_itself() -> None:
    judge = Judge()
    assert with_options(judge.sync, CallOptions()).__func__ is Judge.sync  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", [{"retries": 1}, {"timeout": 5}, {"concurrency": 2}])
def test_name_and_kind_stay(kind: str, options: dict[str, Any]) -> None:
    reward = functools.partial(getattr(Judge(), kind), extra=1)
    wrapped = with_options(reward, CallOptions(**options))
    assert name_of(wrapped) == kind
    assert name_of(with_options(reward, CallOptions(**options), "mine")) == "mine"
    assert is_async(wrapped) == (kind == "patient")
    assert not compares_rows(wrapped)


@pytest.mark.parametrize("options", [{}, {"timeout": LONG}])
def test_a_call_that_raises_is_repeated(
    kind: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    judge = Judge(failures=2)
    with caplog.at_level(logging.WARNING):
        assert scored(getattr(judge, kind), retries=2, **options) == [1.0, 3.0, 2.0]
    assert judge.calls == [COLUMNS["completions"]] * 3
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("reward 'judge': try 1 of 3 failed (OSError: connection refused); the ")
    assert second.startswith("reward 'judge': try 2 of 3 failed")


def test_after_the_last_try_the_error_names_term_tries_and_row(kind: str) -> None:
    judge = Judge(failures=9)
    message = (
        r"^reward 'judge' raised OSError: connection refused \(.*toys\.py, line \d+\) in "
        r"the last of 3 tries\. First row of its batch: Row 0: completion 'a', seeker_post 's'\.$"
    )
    with pytest.raises(RewardError, match=message) as caught:
        scored(getattr(judge, kind), retries=2)
    assert isinstance(caught.value.__cause__, OSError)
    assert len(judge.calls) == 3


def test_the_row_that_failed_is_named_and_the_others_are_not_asked_again(kind: str) -> None:
    class Picky(Judge):
        def end(self, completions: list[str], number: int) -> list[float]:
            if completions == ["cc"]:
                raise OSError("connection refused")
            return super().end(completions, number)

    judge = Picky()
    message = r"in the last of 2 tries\. Row 2: completion 'cc', seeker_post 't'\.$"
    with pytest.raises(RewardError, match=message):
        scored(getattr(judge, kind), retries=1, concurrency=1)
    assert sorted(judge.calls) == [["a"], ["bbb"], ["cc"], ["cc"]]


@pytest.mark.parametrize("concurrency", [None, 2])
def test_mistakes_and_wrong_answers_are_not_repeated(kind: str, concurrency: int | None) -> None:
    judge = Judge(failures=9, error=UserError("the data has no column `mood`."))
    with pytest.raises(RewardError, match="'judge': the data has no column `mood`"):
        scored(getattr(judge, kind), retries=5, concurrency=concurrency)
    assert judge.asked_once_at_most()

    class Wrong(Judge):
        def end(self, completions: list[str], number: int) -> list[float]:
            return [float("nan") if text == "bbb" else 0.0 for text in completions]

    wrong = Wrong()
    expected = r"'judge' gave nan for row 1; .* Row 1: completion 'bbb', seeker_post 's'\.$"
    with pytest.raises(RewardError, match=expected):
        scored(getattr(wrong, kind), retries=5, concurrency=concurrency)
    assert wrong.asked_once_at_most()


def test_a_wrong_length_of_a_single_row_names_the_row() -> None:
    def twice(completions: list[str], **_: Any) -> list[float]:
        return [0.0] * (2 if completions == ["cc"] else 1)

    with pytest.raises(
        RewardError, match=r"gave 2 values for 1 completions.*Row 2: completion 'cc'"
    ):
        scored(twice, concurrency=3, retries=1)


def test_pauses_double_up_to_the_longest_with_jitter(pauses: list[float]) -> None:
    scored(Judge(failures=9).sync, retries=9)
    means = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(0.5 * m <= pause <= 1.5 * m for m, pause in zip(means, pauses, strict=True))
    assert pauses[-1] != pauses[-2]


def test_a_retry_leaves_the_randomness_of_a_training_alone() -> None:
    import random

    random.seed(0)
    expected = random.random()
    random.seed(0)
    scored(Judge(failures=3).sync, retries=3)
    assert random.random() == expected


def test_a_row_keeps_its_columns_and_the_trainers_things() -> None:
    seen: dict[str, Any] = {}
    metrics: list[tuple[str, float]] = []
    extra: dict[str, list[Any]] = {}

    async def looks(completions: list[str], log_metric: Any, log_extra: Any, **rest: Any) -> Any:
        await asyncio.sleep(0.03 / len(completions[0]))  # the first row answers last
        seen[completions[0]] = rest
        log_metric("length", len(completions[0]))
        log_extra("text", completions)
        if completions == ["cc"]:
            log_extra("only", ["here"])
        return [None if completions == ["cc"] else 1.0]

    wrapped = with_options(looks, CallOptions(concurrency=3))
    values = asyncio.run(
        wrapped(  # type: ignore[arg-type]
            **COLUMNS,
            trainer_state="state",
            log_metric=lambda *metric: metrics.append(metric),
            log_extra=extra.__setitem__,
        )
    )
    assert values == [1.0, 1.0, None]
    assert seen["bbb"] == {"seeker_post": ["s"], "topic": ["y"], "trainer_state": "state"}
    assert sorted(metrics) == [("length", 1), ("length", 2), ("length", 3)]
    assert extra == {"text": ["a", "bbb", "cc"], "only": [None, None, "here"]}


def test_options_go_together_in_a_sum_with_other_terms() -> None:
    first, second = Judge(failures=1), Judge(failures=2)
    options = CallOptions(timeout=LONG, retries=3, concurrency=2)
    rewards = RewardSum(
        {
            "sync": Term(with_options(first.sync, options)),
            "async": Term(with_options(second.patient, options), 10.0),
            "plain": Term(Judge().patient, 100.0),
        }
    )
    assert rewards(**COLUMNS) == [111.0, 333.0, 222.0]
    assert (len(first.calls), len(second.calls)) == (4, 5)


def test_a_plain_function_that_gives_something_to_await_is_waited_for() -> None:
    judge = Judge(failures=1)
    assert scored(lambda **columns: judge.patient(**columns), retries=1) == [1.0, 3.0, 2.0]
    assert scored(lambda **columns: judge.patient(**columns), concurrency=2) == [1.0, 3.0, 2.0]


def test_a_generator_is_run_where_its_errors_are_seen() -> None:
    calls: list[None] = []

    def lengths(completions: list[str], **_: Any) -> Any:
        calls.append(None)
        if len(calls) == 1:
            raise OSError("connection refused")
        yield from map(len, completions)

    assert scored(lengths, retries=1) == [1.0, 3.0, 2.0]
    calls.clear()
    with pytest.raises(RewardError, match="'lengths' raised OSError"):
        RewardSum({"lengths": Term(lengths)})(**COLUMNS)


def ranks(completions: list[str], **_: Any) -> list[float]:
    return [float(sorted(completions).index(text)) for text in completions]


ranks.compares_rows = True  # type: ignore[attr-defined]


def test_terms_that_compare_rows_are_not_asked_row_by_row() -> None:
    with pytest.raises(UserError, match=r"compares the rows of a batch.*leave out `concurrency`"):
        with_options(ranks, CallOptions(concurrency=2))
    wrapped = with_options(ranks, CallOptions(retries=1, timeout=LONG))
    assert compares_rows(wrapped)
    assert wrapped(**COLUMNS) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout is 0; it must be a number of seconds above 0"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": True}, "timeout is True"),
        ({"timeout": "30s"}, "timeout is '30s'"),
        ({"retries": -1}, "retries is -1; it must be a whole number, 0 or more"),
        ({"retries": 1.5}, "retries is 1.5"),
        ({"retries": None}, "retries is None"),
        ({"concurrency": 0}, "concurrency is 0; it must be a whole number, 1 or more"),
        ({"concurrency": True}, "concurrency is True"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        CallOptions(**options)
