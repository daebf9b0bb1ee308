"""The loop learns, logs, stops, resumes and shares its work."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from accelerate.tracking import GeneralTracker

from policies.training.reinforce.loop import penalised_rewards
from policies.training.reinforce.rollouts import Outcome
from rewards.reward_sum import RewardSum, Term
from rewards.terms.kl import FixedController, KLPenalty
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from tests.policies.training.documented import check_figures
from tests.policies.training.flat import train_reinforce as train
from tests.policies.training.reinforce.run import EXCHANGES, rewards, run
from tests.policies.training.resuming import check_log_of_four_steps, lines, same_weights, steady
from tests.policies.training.toy_agent import ToyAgent, ToyReward

POSTS = [Exchange("I failed.", "Study."), Exchange("She left.", "Call her.")]


def best_action_probability(agent: ToyAgent) -> float:
    """π(replace) · π(Oh | replace) · π(dear. | Oh): the action that the reward below likes best."""
    position, first, second = agent.tables()
    chosen = position.softmax(-1)[2] * first.softmax(-1)[2, 1] * second.softmax(-1)[1, 1]
    return chosen.item()


@pytest.mark.parametrize(
    "options",
    [
        {"estimator": "leave_one_out"},
        {"estimator": "leave_one_out", "normalise": True},
        {"estimator": "moving_average", "num_samples": 1, "batch_size": 16},
        {"estimator": "ppo", "inner_epochs": 3},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_the_best_action_is_found(options: dict[str, Any], tmp_path: Path) -> None:
    agent = ToyAgent()
    assert best_action_probability(agent) == 1 / 16
    settings = {"batch_size": 4, "num_samples": 4, **options}
    result = train(
        agent,
        ToyReward(lambda before, after: float(after == "Oh dear.")),
        POSTS,
        output=tmp_path,
        accelerator=Accelerator(),
        steps=150,
        learning_rate=0.1,
        warmup=0.0,
        show_every=1000,
        save_every=1000,
        on_samples=None,
        **settings,
    )
    assert best_action_probability(agent) > 0.9
    assert sum(row["reward"] for row in result.rows[-10:]) > 8
    assert result.rows[0]["reward"] < 0.3
    assert result.step == 150


def test_a_high_price_keeps_the_policy_at_the_reference(tmp_path: Path) -> None:
    def after_training(beta: float) -> float:
        agent = ToyAgent()
        with torch.no_grad():  # it begins where the reference is
            for name, table in agent.reference.items():
                getattr(agent.module, name).copy_(table)
        result = train(
            agent,
            ToyReward(),
            POSTS,
            output=tmp_path / str(beta),
            accelerator=Accelerator(),
            steps=60,
            batch_size=4,
            kl=KLPenalty(FixedController(beta)),
            learning_rate=0.1,
            show_every=1000,
            on_samples=None,
        )
        assert result.rows[0]["kl_k1"] == pytest.approx(0, abs=1e-6)
        assert result.rows[0]["kl/value"] == beta
        return result.rows[-1]["kl_k3"]

    assert after_training(0.0) > 0.5
    assert after_training(100.0) < 0.1


def test_the_log_of_a_step(tmp_path: Path) -> None:
    shown: list[Any] = []
    run(tmp_path, 4, show_every=2, on_samples=lambda title, rows: shown.append((title, rows)))
    row = check_log_of_four_steps(tmp_path, shown)[1]
    shares = row["share_insert"] + row["share_replace"] + row["share_keep"]
    assert shares == pytest.approx(1)
    assert row["kl_k3"] >= 0
    assert {"rewards/kindness", "rewards/brevity", "position_entropy", "grad_norm"} <= set(row)
    samples = lines(tmp_path, "samples.jsonl")
    assert samples[0]["rewards"].keys() == {"kindness", "brevity"}


def test_trackers_get_the_log(tmp_path: Path) -> None:
    class Kept(GeneralTracker):
        name = "kept"
        requires_logging_directory = False

        def __init__(self) -> None:
            super().__init__()
            self.rows: list[dict[str, Any]] = []

        @property
        def tracker(self) -> Any:
            return self.rows

        def store_init_configuration(self, values: dict[str, Any]) -> None:
            pass

        def log(self, values: dict[str, Any], step: int | None, **_: Any) -> None:
            assert values["step"] == step
            self.rows.append(values)

    kept = Kept()
    accelerator = Accelerator(log_with=[kept])
    accelerator.init_trackers("run")
    options: dict[str, Any] = {"accelerator": accelerator, "on_samples": None}
    result = train(ToyAgent(), rewards(), POSTS, output=tmp_path, steps=2, batch_size=2, **options)
    assert kept.rows == result.rows


def test_what_cannot_be_written_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*log\.jsonl"):
        run(tmp_path, 1)


def test_every_figure_is_explained(tmp_path: Path) -> None:
    def halves(completions: Any, log_extra: Any, **_: Any) -> list[float]:
        log_extra("first", [0.5] * len(completions))
        return [1.0] * len(completions)

    reward = RewardSum({"halves": Term(halves, 1.0)})
    run(tmp_path, 2, estimator="ppo", inner_epochs=2, reward=reward)
    check_figures({name for row in lines(tmp_path) for name in row}, "partner.md")


def test_rewards_are_told_when_they_may_adapt(tmp_path: Path) -> None:
    reward = ToyReward()
    run(tmp_path, 3, reward=reward)
    assert [call["update"] for call in reward.called] == [False, True, True, True, False]
    train_call = reward.called[1]
    assert len(train_call["completions"]) == 12  # every sample is scored, none averaged
    assert train_call["id"] == [i for i in train_call["id"][::3] for _ in range(3)]


def test_the_best_dev_reward_is_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = {"eval_every": 1, "learning_rate": 3.0, "kl": None}
    agent, result = run(tmp_path, 6, keep_best=True, **options)
    measured = {row["step"]: row["dev/reward"] for row in result.rows}
    assert measured[result.step] == max(measured.values())
    again, repeated = run(tmp_path, 6, keep_best=True, **options)  # finished: nothing is trained
    assert repeated == result
    last, _ = run(tmp_path / "last", 6, **options)
    assert result.step < 6, "choose a rate that overshoots"
    for name, parameter in agent.module.named_parameters():
        assert torch.equal(parameter, getattr(again.module, name))
        assert not torch.equal(parameter, getattr(last.module, name))


def test_the_real_policy_leaves_the_reference_and_earns_more(tmp_path: Path) -> None:
    """Short sentences pay; one without an end changes nothing, so the gain is of a letter or so."""
    options: dict[str, Any] = {"kl": KLPenalty(FixedController(0.001)), "batch_size": 8}
    _, result = run(tmp_path, 20, "tiny", learning_rate=0.03, show_every=100, **options)
    rows = result.rows[1:]
    assert rows[0]["kl_k1"] == pytest.approx(0, abs=1e-3)  # sampled and teacher-forced agree
    assert rows[0]["kl_k3"] < 1e-5
    assert rows[-1]["kl_k3"] > 0.05
    brevity = [row["rewards/brevity"] for row in rows]
    assert sum(brevity[-5:]) / 5 > sum(brevity[:5]) / 5 + 0.7


def test_micro_batches_change_no_loss(tmp_path: Path) -> None:
    run(tmp_path / "a", 3, micro_batch_size=1)
    run(tmp_path / "b", 3, micro_batch_size=100)
    for a, b in zip(steady(tmp_path / "a"), steady(tmp_path / "b"), strict=True):
        assert a == pytest.approx(b, rel=1e-4, abs=1e-6)


def test_samples_without_a_reward_teach_nothing(tmp_path: Path) -> None:
    agent, result = run(
        tmp_path, 2, reward=ToyReward(lambda before, after: None), entropy_weight=0.0
    )
    assert all(row["advantage"] == row["grad_norm"] == 0 for row in result.rows[1:])
    assert "reward" not in result.rows[1]
    assert same_weights(agent, ToyAgent())


def test_collapse_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="policies.training.display"):
        run(tmp_path, 25, reward=ToyReward(lambda before, after: 1.0), show_every=1000)
    flat = [r.getMessage() for r in caplog.records if "same reward" in r.getMessage()]
    assert len(flat) == 1
    assert flat[0].startswith("step 20: ")


def test_a_reference_that_rules_a_sample_out_is_an_error() -> None:
    outcome = Outcome(1.0, {}, (), (), (), (), penalty=float("inf"))
    with pytest.raises(UserError, match="top_p 1"):
        penalised_rewards([outcome])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "a2c"}, "estimator cannot be 'a2c'"),
        ({"num_samples": 1}, "num_samples must be 2 or more"),
        ({"num_samples": 4, "sentences_per_position": 3}, "num_samples of 6 or more"),
        ({"num_samples": 5, "sentences_per_position": 2}, "5 is no multiple of"),
        ({"inner_epochs": 2}, "inner_epochs 2 needs ppo"),
        ({"batch_size": 0}, "must be 1 or more"),
        ({"keep_best": True, "dev_exchanges": []}, "give dev exchanges"),
    ],
)
def test_settings_that_cannot_work(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        run(tmp_path, 1, **options)


def test_no_exchanges_are_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no exchanges to train on"):
        train(
            ToyAgent(),
            rewards(),
            [],
            output=tmp_path,
            accelerator=Accelerator(),
            steps=1,
            batch_size=1,
        )


def test_more_rows_than_exchanges_are_drawn_again(tmp_path: Path) -> None:
    _, result = run(tmp_path, 1, batch_size=2 * len(EXCHANGES))
    assert result.rows[-1]["step"] == 1


def test_a_gradient_that_is_not_a_number_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    class Broken(ToyAgent):
        """Its log-probabilities lose their gradient in the sixth step."""

        def log_probs(self, *given: Any, **options: Any) -> Any:
            found = super().log_probs(*given, **options)
            if torch.is_grad_enabled() and len(lines(tmp_path)) == 6:  # row 0 and five steps
                found.position_B.register_hook(lambda gradient: gradient * float("nan"))
            return found

    agent = Broken()
    settings: dict[str, Any] = {"batch_size": 4, "save_every": 2, "eval_every": 100}
    with pytest.raises(UserError, match=r"^step 6: the gradient is nan, so the training"):
        train(
            agent,
            rewards(),
            EXCHANGES,
            output=tmp_path,
            accelerator=Accelerator(),
            steps=9,
            dev_exchanges=EXCHANGES[:1],
            on_samples=None,
            **settings,
        )
    assert all(p.isfinite().all() for p in agent.module.parameters())
    assert max((tmp_path / "checkpoints").iterdir()).name == "step_00000004"
    assert [row["step"] for row in lines(tmp_path)] == [0, 1, 2, 3, 4, 5]
