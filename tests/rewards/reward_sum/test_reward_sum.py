"""A sum of rewards: weights, metrics, None, scale, async terms, errors, state."""

import asyncio
import math
import time
from pathlib import Path
from typing import Any

import pytest

from rewards.protocol import RewardError
from rewards.reward_sum import RewardSum, Scores, Term
from rewards.scaling import Moments
from rewriting.errors import UserError
from rewriting.runtime.training.checkpoints import Checkpoints
from tests.rewards.reward_sum.toys import COLUMNS, gathering, length


def only_odd(completions: list[str], **_: Any) -> list[float | None]:
    return [10.0 if len(text) % 2 else None for text in completions]


def never(completions: list[str], **_: Any) -> list[None]:
    return [None] * len(completions)


def test_weights_none_and_metrics_by_hand() -> None:
    terms = {"length": Term(length, 2.0), "odd": Term(only_odd, -0.5), "metric": Term(length, 0)}
    rewards = RewardSum(terms)
    scores = rewards.score(**COLUMNS)
    assert scores.terms == {
        "length": [1.0, 3.0, 2.0],
        "odd": [10.0, 10.0, None],
        "metric": [1.0, 3.0, 2.0],
    }
    assert scores.contributions == {"length": [2.0, 6.0, 4.0], "odd": [-5.0, -5.0, None]}
    assert scores.totals == [-3.0, 1.0, 4.0]
    assert rewards(**COLUMNS) == scores.totals
    assert scores.means() == {"length": 2.0, "odd": 10.0, "metric": 2.0}
    assert scores.mean_total() == pytest.approx(2 / 3)
    assert scores.row(2) == {"length": 2.0, "odd": None, "metric": 2.0}
    assert len(scores) == 3


def test_a_row_to_which_no_rewarded_term_applies_has_no_total() -> None:
    rewards = RewardSum({"odd": Term(only_odd), "metric": Term(length, 0)})
    scores = rewards.score(**COLUMNS)
    assert scores.totals == [10.0, 10.0, None]
    nothing = RewardSum({"never": Term(never)}).score(**COLUMNS)
    assert nothing.totals == [None, None, None]
    assert nothing.means() == {}
    assert nothing.mean_total() is None


def test_no_rows_no_questions() -> None:
    def unasked(**_: Any) -> list[float]:
        raise AssertionError

    scores = RewardSum({"unasked": Term(unasked)}).score(completions=[], seeker_post=[])
    assert scores == Scores({"unasked": []}, {"unasked": []}, [])


def test_a_sum_is_a_reward_and_goes_into_a_sum() -> None:
    inner = RewardSum({"length": Term(length, 2.0)}, name="inner")
    assert inner.__name__ == "inner"
    outer = RewardSum({"inner": Term(inner, 10.0), "length": Term(length)})
    assert outer(**COLUMNS) == [21.0, 63.0, 42.0]


def test_what_trl_always_passes_is_there_without_trl() -> None:
    seen: dict[str, Any] = {}

    def as_for_trl(
        prompts: list[str], completions: list[str], trainer_state: Any, log_metric: Any, **rest: Any
    ) -> list[float]:
        seen.update(prompts=prompts, state=trainer_state, log=log_metric)
        return [0.0] * len(completions)

    rewards = RewardSum({"as_for_trl": Term(as_for_trl)})
    rewards.score(**COLUMNS)
    assert seen == {"prompts": COLUMNS["seeker_post"], "state": None, "log": None}
    rewards.score(**COLUMNS, prompts=["p", "q", "r"])
    assert seen["prompts"] == ["p", "q", "r"]


def test_terms_are_logged_by_name() -> None:
    metrics: dict[str, float] = {}
    extra: dict[str, list[float | None]] = {}
    terms = {"odd": Term(only_odd, 0.0), "never": Term(never, 0.0), "length": Term(length)}
    RewardSum(terms)(
        **COLUMNS, log_metric=metrics.__setitem__, log_extra=extra.__setitem__, update=["a column"]
    )
    assert metrics == {"rewards/odd/mean": 10.0, "rewards/length/mean": 2.0}
    assert extra["odd"] == [10.0, 10.0, None]
    assert extra["never"] == [None, None, None]


@pytest.mark.parametrize("inside_a_loop", [False, True])
def test_async_terms_wait_together(inside_a_loop: bool) -> None:
    async def slow(completions: list[str], **_: Any) -> list[float]:
        await asyncio.sleep(0.2)
        return [1.0] * len(completions)

    names = [f"slow_{i}" for i in range(5)]
    rewards = RewardSum({name: Term(slow) for name in names} | {"length": Term(length)})

    async def within() -> list[float | None]:
        return rewards(**COLUMNS)

    start = time.monotonic()
    totals = asyncio.run(within()) if inside_a_loop else rewards(**COLUMNS)
    assert time.monotonic() - start < 0.8
    assert totals == [6.0, 8.0, 7.0]
    assert list(rewards.score(**COLUMNS).terms) == [*names, "length"]


async def broken_async(**_: Any) -> list[float]:
    raise OSError("connection refused")


async def nan_async(completions: list[str], **_: Any) -> list[float]:
    return [math.nan] * len(completions)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (lambda **_: [1.0], "'bad' gave 1 values for 3 completions"),
        (lambda **_: [0.0, math.nan, 0.0], "'bad' gave nan for row 1.*completion 'bbb'"),
        (lambda **_: [0.0, 0.0, math.inf], "'bad' gave inf for row 2.*completion 'cc'"),
        (lambda **_: ["high", 0.0, 0.0], "'bad' gave 'high' for row 0.*response_post 'aaaa'"),
        (lambda **_: {}["x"], "'bad' raised KeyError: 'x'.*Row 0: completion 'a'"),
        (broken_async, "'bad' raised OSError: connection refused"),
        (nan_async, "'bad' gave nan for row 0"),
    ],
)
def test_every_wrong_answer_names_the_term_and_shows_the_row(reward: Any, message: str) -> None:
    async def unheard(completions: list[str], **_: Any) -> list[float]:
        return [0.0] * len(completions)

    rewards = RewardSum({"unheard": Term(unheard), "bad": Term(reward, 0.0)})
    with pytest.raises(RewardError, match=message):
        rewards(**COLUMNS)


def test_a_nested_error_names_the_inner_term() -> None:
    inner = RewardSum({"bad": Term(lambda **_: [1.0])})
    with pytest.raises(RewardError, match="reward 'bad' gave 1 values"):
        RewardSum({"inner": Term(inner)}).score(**COLUMNS)


def test_scaling_counts_only_when_asked() -> None:
    rewards = RewardSum({"length": Term(length, 3.0, "std"), "plain": Term(length)})
    before = rewards.score(**COLUMNS)
    assert before.contributions["length"] == [3.0, 9.0, 6.0]
    assert rewards.moments == {"length": Moments()}
    rewards.score(**(COLUMNS | {"completions": ["", "aaaa", "aa"]}), update=True)
    assert rewards.moments == {"length": Moments(3, 2.0, 8.0)}
    after = rewards.score(**COLUMNS)
    assert after.contributions["length"] == [1.5, 4.5, 3.0]
    assert after.terms["length"] == after.contributions["plain"] == [1.0, 3.0, 2.0]


def test_whitening_takes_the_batch_itself_into_account() -> None:
    rewards = RewardSum({"length": Term(length, 1.0, "whiten")})
    assert rewards.score(**COLUMNS, update=True).totals == [-1.0, 1.0, 0.0]


def test_processes_agree_on_the_scale() -> None:
    shares = [{"completions": ["a", "bbb"]}, {"completions": ["ccccc", "dd", "e"]}]
    whole = RewardSum({"length": Term(length, scale="std")})
    whole.score(completions=["a", "bbb", "ccccc", "dd", "e"], update=True)
    for share in shares:
        sent: list[Any] = []
        for other in shares:
            RewardSum({"length": Term(length, scale="std")}, gather=gathering(sent)).score(
                completions=other["completions"], update=True
            )
        gathered = RewardSum(
            {"length": Term(length, scale="std")}, gather=lambda own, sent=sent: sent
        )
        gathered.score(completions=share["completions"], update=True)
        assert gathered.moments["length"].count == 5
        assert gathered.moments["length"].std == pytest.approx(whole.moments["length"].std)


def test_the_state_survives_a_checkpoint(tmp_path: Path) -> None:
    rewards = RewardSum({"length": Term(length, scale="std"), "plain": Term(length)})
    rewards.score(**COLUMNS, update=True)
    Checkpoints(tmp_path).save(1, rewards=rewards)
    restored = RewardSum({"length": Term(length, scale="std"), "plain": Term(length)})
    assert Checkpoints(tmp_path).restore(rewards=restored) == 1
    assert restored.moments == rewards.moments
    assert restored.score(**COLUMNS) == rewards.score(**COLUMNS)
    with pytest.raises(UserError, match=r"other scaled terms \(length\) than these \(none\)"):
        RewardSum({"length": Term(length)}).load_state_dict(rewards.state_dict())


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({}, "at least one reward"),
        ({"x": Term(length, math.nan)}, "weight of reward 'x' is nan"),
        ({"x": Term(length, "1")}, "weight of reward 'x' is '1'"),  # type: ignore[arg-type]
        ({"x": Term(length, True)}, "weight of reward 'x' is True"),
        ({"x": Term(length, 1.0, "minmax")}, "scale of reward 'x' is 'minmax'; there is: std, wh"),
        ({"x": Term(3)}, "reward 'x' is 3, which cannot be called"),  # type: ignore[arg-type]
    ],
)
def test_impossible_sums_cannot_be_made(terms: dict[str, Term], message: str) -> None:
    with pytest.raises(UserError, match=message):
        RewardSum(terms)
