"""A sum of rewards: weights, metrics, None, scale, async terms, errors, state."""

import asyncio
import functools
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

COLUMNS: dict[str, Any] = {
    "completions": ["a", "bbb", "cc"],
    "seeker_post": ["s", "s", "t"],
    "response_post": ["aaaa", "bb", "cc"],
}


def length(completions: list[str], **_: Any) -> list[float]:
    return [float(len(text)) for text in completions]


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
            RewardSum({"length": Term(length, scale="std")}, gather=_keep(sent)).score(
                completions=other["completions"], update=True
            )
        gathered = RewardSum(
            {"length": Term(length, scale="std")}, gather=lambda own, sent=sent: sent
        )
        gathered.score(completions=share["completions"], update=True)
        assert gathered.moments["length"].count == 5
        assert gathered.moments["length"].std == pytest.approx(whole.moments["length"].std)


def _keep(sent: list[Any]) -> Any:
    def gather(own: Any) -> list[Any]:
        sent.append(own)
        return [own]

    return gather


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


class Rank:
    """1 for the longest completion of all that it sees, 0 for the others."""

    def __init__(self, compares_rows: bool) -> None:
        self.compares_rows = compares_rows

    def __call__(self, completions: list[str], bonus: list[int], **_: Any) -> list[float]:
        longest = max(map(len, completions))
        return [float(len(c) == longest) + b for c, b in zip(completions, bonus, strict=True)]


@pytest.mark.parametrize("compares_rows", [True, False])
def test_a_term_that_compares_rows_sees_those_of_all_processes_in_training(
    compares_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[dict[str, list[Any]]] = [
        {"completions": ["a", "bbb"], "bonus": [0, 10]},
        {"completions": ["cc"], "bonus": [20]},
    ]
    terms = {"rank": Term(Rank(compares_rows)), "length": Term(length)}
    sent: list[Any] = []
    for share in shares:
        RewardSum(terms, gather=_keep(sent)).score(update=True, **share)
    found = []
    for process, share in enumerate(shares):
        monkeypatch.setattr("rewards.reward_sum.process_index", lambda process=process: process)
        whole = RewardSum(terms, gather=lambda own: sent)
        found.append(whole.score(update=True, **share).terms)
        assert whole.score(**share).terms["rank"] == RewardSum(terms).score(**share).terms["rank"]
    assert [terms["length"] for terms in found] == [[1.0, 3.0], [2.0]]
    alone = [[0.0, 11.0], [21.0]]
    assert [terms["rank"] for terms in found] == ([[0.0, 11.0], [20.0]] if compares_rows else alone)


def doubled(own: Any) -> list[Any]:
    """Another process with the same rows."""
    return [own, own]


def seen(completions: list[str], extra: int = 0, **_: Any) -> list[float]:
    return [float(len(completions) + extra)] * len(completions)


seen.compares_rows = True  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "reward",
    [seen, functools.partial(seen, extra=0), RewardSum({"inner": Term(seen)})],
    ids=["function", "with options", "sum"],
)
def test_however_a_term_says_that_it_compares_rows(reward: Any) -> None:
    both = RewardSum({"seen": Term(reward)}, gather=doubled)
    share: dict[str, Any] = {"completions": ["a", "b"], "topic": ("x", "y")}
    assert both.score(update=True, **share).totals == [4.0, 4.0]
    assert both.score(**share).totals == [2.0, 2.0]


def test_a_process_without_rows_takes_part() -> None:
    other = {"completions": ["a", "b"], "prompts": [], "seeker_post": []}
    asked: list[Any] = []

    def gather(own: Any) -> list[Any]:
        asked.append(own)
        return [own, other]

    empty = RewardSum({"seen": Term(seen)}, gather=gather)
    assert empty.score(completions=[], update=True).totals == []
    assert len(asked) == 1


class InTwoSteps:
    """Reads the length of each completion, and compares it with the mean of all."""

    compares_rows = True

    def __init__(self, *, wrong: bool = False) -> None:
        self.wrong = wrong

    def __call__(self, **columns: Any) -> list[float]:
        return self.compare(self.read(**columns))

    def read(self, *, completions: list[str], **_: Any) -> list[int]:
        return [len(text) for text in completions]

    def compare(self, facts: list[int]) -> list[float]:
        mean = sum(facts) / len(facts)
        return [length - mean for length in facts][: -1 if self.wrong else None]


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


def test_a_term_in_two_steps_exchanges_what_it_read() -> None:
    sent: list[Any] = []

    def gather(own: Any) -> list[Any]:
        sent.append(own)
        return [own, [8, 8]]

    rewards = RewardSum({"length": Term(InTwoSteps())}, gather=gather)
    assert rewards.score(completions=["aa", "bbbb"], update=True).totals == [-3.5, -1.5]
    assert rewards.score(completions=["aa", "bbbb"]).totals == [-1.0, 1.0]
    assert sent == [[2, 4]]
    assert rewards.score(completions=[], update=True).totals == []
    assert sent[1:] == [[]]  # a process without rows takes part


def test_what_goes_wrong_in_either_step_is_named() -> None:
    rewards = RewardSum({"length": Term(InTwoSteps())})
    with pytest.raises(RewardError, match="reward 'length' raised TypeError"):
        rewards.score(completions=[None], update=True)
    rewards = RewardSum({"length": Term(InTwoSteps(wrong=True))})
    with pytest.raises(RewardError, match="reward 'length' gave 1 values for 2 completions"):
        rewards.score(completions=["a", "b"], update=True)


def test_an_async_term_cannot_compare_rows() -> None:
    class Slow:
        compares_rows = True

        async def __call__(self, **_: Any) -> list[float]:
            return []

    with pytest.raises(UserError, match="'slow' is async and compares rows"):
        RewardSum({"slow": Term(Slow())})
