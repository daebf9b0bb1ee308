"""Our sum, our terms and a user's function as they are, in TRL's real trainers."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewards.loading import load_function
from rewards.named import Models, build_rewards
from rewards.protocol import RewardError, guarded, texts
from rewards.reward_sum import RewardSum, Term
from rewards.scaling import moments_of
from rewards.terms.edit_size import EditSize
from rewards.terms.levels.empathy_change import EmpathyChange
from rewards.terms.repetition import Repetition
from rewards.terms.specificity import Specificity
from tests.rewards.fakes import FakeEncoder, FakeIdentifier
from tests.rewards.tiny_trl import exchanges, options, tiny_model

SHORTER = """
def shorter(completions, response_post, **_):
    return [len(r) - len(c) for c, r in zip(completions, response_post)]
"""
TRAINERS = ("GRPO", "RLOO")


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Any]:
    """Runs two steps of a trainer and gives it back."""

    def run(kind: str, reward_funcs: Any, conversational: bool = False, **more: Any) -> Any:
        import torch
        import trl

        torch.set_num_threads(1)
        model, tokenizer = tiny_model()
        data = exchanges(conversational)
        trainer = getattr(trl, f"{kind}Trainer")(
            model=model,
            processing_class=tokenizer,
            args=getattr(trl, f"{kind}Config")(**options(tmp_path), **more),
            train_dataset=data,
            eval_dataset=data if "eval_strategy" in more else None,
            reward_funcs=reward_funcs,
        )
        trainer.train()
        assert trainer.state.global_step == 2
        return trainer

    return run


def logs(trainer: Any, prefix: str = "rewards/") -> list[dict[str, float]]:
    steps = [step for step in trainer.state.log_history if f"{prefix}" in "".join(step)]
    return [{k: v for k, v in step.items() if k.startswith(prefix)} for step in steps]


def spoken(completions: list[Any], **_: Any) -> list[float]:
    return [float(len(text.split())) for text in texts(completions)]


@pytest.mark.parametrize("kind", TRAINERS)
def test_a_sum_with_a_users_function(
    kind: str, train: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_rewards.py").write_text(SHORTER)
    monkeypatch.chdir(tmp_path)
    mapping = {"empathy_change": 1.0, "edit_size": 0, "my_rewards.py:shorter": 0.1}
    trainer = train(kind, build_rewards(mapping, Models(identifier=FakeIdentifier())))
    for step in logs(trainer):
        names = {"empathy_change", "edit_size", "shorter", "reward_sum"}
        assert {f"rewards/{name}/mean" for name in names} <= step.keys()
        mean = step["rewards/empathy_change/mean"] + 0.1 * step["rewards/shorter/mean"]
        assert step["rewards/reward_sum/mean"] == pytest.approx(mean, rel=1e-5)
    assert len(logs(trainer)) == 2


@pytest.mark.parametrize("kind", TRAINERS)
def test_single_terms_and_a_users_function_unchanged(
    kind: str, train: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "my_rewards.py").write_text(SHORTER)
    shorter = load_function(f"{tmp_path}/my_rewards.py:shorter")
    terms = [EmpathyChange(FakeIdentifier()), Specificity(FakeEncoder()), EditSize()]
    more = [Repetition(2), Repetition(1, name="repeated_words"), shorter, guarded(spoken)]
    trainer = train(kind, [*terms, *more])
    names = ["empathy_change", "specificity", "edit_size", "repetition", "repeated_words"]
    assert trainer.reward_func_names == [*names, "shorter", "spoken"]
    for step in logs(trainer):
        assert -1 <= step["rewards/edit_size/mean"] <= 0


@pytest.mark.parametrize("kind", TRAINERS)
def test_conversations_and_async_terms(kind: str, train: Callable[..., Any]) -> None:
    async def later(completions: list[Any], **_: Any) -> list[float]:
        return spoken(completions)

    rewards = RewardSum({"now": Term(spoken), "later": Term(later), "edit_size": Term(EditSize())})
    trainer = train(kind, [rewards, guarded(later)], conversational=True)
    for step in logs(trainer):
        assert 0 <= step["rewards/now/mean"] == step["rewards/later/mean"] <= 4


def test_rows_that_no_term_applies_to_are_left_out(train: Callable[..., Any]) -> None:
    def first_only(completions: list[str], **_: Any) -> list[float | None]:
        return [1.0, *[None] * (len(completions) - 1)]

    trainer = train("GRPO", RewardSum({"first_only": Term(first_only)}))
    for step in logs(trainer):
        assert step["rewards/reward_sum/mean"] == step["rewards/first_only/mean"] == 1.0


def test_evaluation_does_not_move_the_scale(train: Callable[..., Any]) -> None:
    seen: list[list[float]] = []

    def watched(completions: list[str], trainer_state: Any, **_: Any) -> list[float]:
        seen.append([float(len(text) + len(seen)) for text in completions])
        return seen[-1]

    rewards = RewardSum({"watched": Term(watched, scale="std")})
    evaluation = {"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 4}
    train("GRPO", rewards, **evaluation)
    training = [batch for batch in seen if batch is seen[0] or batch is seen[len(seen) // 2]]
    assert len(seen) > len(training) == 2
    expected = moments_of([value for batch in training for value in batch])
    assert rewards.moments["watched"].count == expected.count == 8
    assert rewards.moments["watched"].mean == pytest.approx(expected.mean)


def test_every_term_stands_in_the_table_of_completions(
    train: Callable[..., Any], tmp_path: Path
) -> None:
    from datasets import Dataset

    rewards = RewardSum({"edit_size": Term(EditSize()), "spoken": Term(spoken, 0.0)})
    train("GRPO", rewards, log_completions=True)
    table = Dataset.from_parquet(
        str(tmp_path / "completions" / "completions_00002.parquet"), cache_dir=str(tmp_path)
    )
    for row in table:
        assert row["reward_sum"] == pytest.approx(row["edit_size"])
        assert row["spoken"] == len(row["completion"].split())


def raising(**_: Any) -> list[float]:
    raise LookupError("no such mood")


def nan(completions: list[str], **_: Any) -> list[float]:
    return [math.nan] * len(completions)


def one_short(completions: list[str], **_: Any) -> list[float]:
    return [0.0] * (len(completions) - 1)


def strings(completions: list[str], **_: Any) -> list[str]:
    return ["good"] * len(completions)


async def raising_later(**_: Any) -> list[float]:
    raise LookupError("no such mood")


WRONG = [
    (raising, "reward 'raising' raised LookupError: no such mood .*Row 0: completion"),
    (nan, "reward 'nan' gave nan for row 0"),
    (one_short, "reward 'one_short' gave 3 values for 4 completions.*Row 3: completion"),
    (strings, "reward 'strings' gave 'good' for row 0.*seeker_post '.*', response_post '"),
    (raising_later, "reward 'raising_later' raised LookupError: no such mood"),
]


@pytest.mark.parametrize("kind", TRAINERS)
@pytest.mark.parametrize(("reward", "message"), WRONG)
def test_a_wrong_reward_stops_the_training_with_one_clear_error(
    kind: str, reward: Any, message: str, train: Callable[..., Any]
) -> None:
    with pytest.raises(RewardError, match=message):
        train(kind, guarded(reward))
    with pytest.raises(RewardError, match=message):
        train(kind, RewardSum({reward.__name__: Term(reward), "spoken": Term(spoken)}))
