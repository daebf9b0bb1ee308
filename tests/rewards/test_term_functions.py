"""A sum term by term: TRL logs, weighs and normalises each, and nothing is computed twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewards.protocol import RewardError
from rewards.reward_sum import RewardSum, Term
from rewards.scaling import moments_of
from rewards.term_functions import term_functions
from rewards.terms.edit_size import EditSize
from rewards.terms.levels.empathy_change import EmpathyChange
from rewards.terms.levels.level_alignment import LevelAlignment
from tests.rewards.fakes import FakeIdentifier
from tests.rewards.tiny_trl import exchanges, options, tiny_model

ROWS = {
    "completions": ["so sorry", "why you", "ok"],
    "seeker_post": ["the exam", "the exam", "rain"],
    "response_post": ["stop", "stop", "ok"],
}


def length(completions: list[str], **_: Any) -> list[float]:
    return [float(len(text)) for text in completions]


async def later(completions: list[str], **_: Any) -> list[float]:
    return length(completions)


def parted(completions: list[str], log_extra: Any, **_: Any) -> list[float | None]:
    log_extra("letters", [len(text) for text in completions])
    return [None, *[1.0] * (len(completions) - 1)]


def sums() -> RewardSum:
    return RewardSum(
        {
            "length": Term(length, 0.5),
            "parted": Term(parted, 2.0),
            "edit_size": Term(EditSize(), 0.0),
        }
    )


def test_the_functions_with_their_weights_are_the_sum() -> None:
    functions = term_functions(sums())
    assert [(one.name, one.weight) for one in functions] == [
        ("length", 0.5),
        ("parted", 2.0),
        ("edit_size", 0.0),
    ]
    columns = [one.function(**ROWS) for one in functions]
    assert columns[0] == [8.0, 7.0, 2.0]
    assert columns[1] == [None, 1.0, 1.0]
    weighted = [
        [one.weight * (value or 0.0) for value in column]
        for one, column in zip(functions, columns, strict=True)
    ]
    assert (
        [sum(row) for row in zip(*weighted, strict=True)]
        == sums().score(**ROWS).totals
        == [4.0, 5.5, 3.0]
    )


def test_models_and_their_readings_are_shared() -> None:
    together, apart = FakeIdentifier(), FakeIdentifier()

    def terms(identifier: FakeIdentifier) -> RewardSum:
        change, align = EmpathyChange(identifier), LevelAlignment(identifier)
        again = EmpathyChange(identifier, name="again")
        return RewardSum({"change": Term(change), "align": Term(align), "again": Term(again)})

    levels = {name: [0, 1, 2] for name in ("emotional_reactions", "interpretations")}
    rows = ROWS | levels | {"explorations": [0, 1, 2]}
    terms(together).score(**rows)
    for one in term_functions(terms(apart)):
        one.function(**rows)
    assert apart.asked == together.asked


def test_what_a_term_reports_is_logged_by_its_name() -> None:
    metrics: dict[str, float] = {}
    extras: dict[str, list[Any]] = {}
    for one in term_functions(sums()):
        one.function(**ROWS, log_metric=metrics.__setitem__, log_extra=extras.__setitem__)
    assert metrics == {"rewards/parted/letters/mean": pytest.approx(17 / 3)}
    assert extras == {"parted/letters": [8, 7, 2]}


def test_a_wrong_term_is_named() -> None:
    def wrong(**_: Any) -> list[float]:
        raise LookupError("no such mood")

    (one,) = term_functions(RewardSum({"wrong": Term(wrong)}))
    with pytest.raises(RewardError, match="reward 'wrong' raised LookupError: no such mood"):
        one.function(**ROWS)


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Any]:
    """Runs two steps of a trainer on the terms of a sum and gives it back."""

    def run(kind: str, rewards: RewardSum, **more: Any) -> Any:
        import trl

        model, tokenizer = tiny_model()
        functions = term_functions(rewards)
        arguments = options(tmp_path) | {"reward_weights": [one.weight for one in functions]}
        trainer = getattr(trl, f"{kind}Trainer")(
            model=model,
            processing_class=tokenizer,
            args=getattr(trl, f"{kind}Config")(**arguments, **more),
            train_dataset=exchanges(),
            reward_funcs=[one.function for one in functions],
        )
        trainer.train()
        return trainer

    return run


def logged(trainer: Any) -> list[dict[str, float]]:
    return [row for row in trainer.state.log_history if "reward" in row]


@pytest.mark.parametrize("kind", ["GRPO", "RLOO"])
def test_trl_weighs_and_logs_each(kind: str, train: Callable[..., Any]) -> None:
    rewards = {"length": Term(length, 0.5), "later": Term(later, 2.0)}
    log = logged(train(kind, RewardSum(rewards | {"edit_size": Term(EditSize(), 0.0)})))
    assert len(log) == 2
    for row in log:
        assert row["rewards/later/mean"] == row["rewards/length/mean"]
        assert row["reward"] == pytest.approx(2.5 * row["rewards/length/mean"], rel=1e-5)
        assert -1 <= row["rewards/edit_size/mean"] <= 0


def test_trl_normalises_each(train: Callable[..., Any]) -> None:
    """After that, a term a thousand times as large as another says no more than its weight."""

    def shorter(completions: list[str], **_: Any) -> list[float]:
        return [-1000.0 * value for value in length(completions)]

    rewards = RewardSum({"length": Term(length, 3.0), "shorter": Term(shorter, 1.0)})

    def paid_for_length(trainer: Any) -> float:
        lengths = list(trainer._logs["rewards"]["length"])
        advantages = list(trainer._logs["advantages"])
        groups = [(lengths[i : i + 2], advantages[i : i + 2]) for i in range(0, len(lengths), 2)]
        return sum((sizes[1] - sizes[0]) * (paid[1] - paid[0]) for sizes, paid in groups)

    aggregation = {"multi_objective_aggregation": "normalize_then_sum"}
    assert paid_for_length(train("GRPO", rewards, **aggregation)) > 0
    assert paid_for_length(train("GRPO", rewards)) < 0


def test_a_scale_goes_on_being_counted_in_training(train: Callable[..., Any]) -> None:
    seen: list[float] = []

    def watched(completions: list[str], **_: Any) -> list[float]:
        seen.extend(len(text) + 0.1 * len(seen) for text in completions)
        return seen[-len(completions) :]

    log = logged(train("GRPO", RewardSum({"watched": Term(watched, scale="std")})))
    assert len(seen) == 8
    for row, count in zip(log, (4, 8), strict=True):
        raw = seen[count - 4 : count]
        assert row["rewards/watched/unscaled"] == pytest.approx(sum(raw) / 4, rel=1e-5)
        std = moments_of(seen[:count]).std
        assert row["rewards/watched/mean"] == pytest.approx(sum(raw) / 4 / std, rel=1e-5)
