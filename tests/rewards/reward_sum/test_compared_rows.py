"""Terms that compare rows see those of all processes in training."""

import functools
from typing import Any

import pytest

from rewards.protocol import RewardError
from rewards.reward_sum import RewardSum, Term
from rewriting.errors import UserError
from tests.rewards.reward_sum.toys import gathering, length


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
        RewardSum(terms, gather=gathering(sent)).score(update=True, **share)
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
