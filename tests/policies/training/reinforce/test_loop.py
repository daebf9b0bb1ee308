"""The loop learns, logs, stops, resumes and shares its work."""

import json
import logging
import os
import signal
import subprocess
import sys
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
from tests.policies.training.toy_agent import ToyAgent, ToyReward

ROOT = Path(__file__).parents[4]
PROGRAM = "tests.policies.training.reinforce.run"
POSTS = [Exchange("I failed.", "Study."), Exchange("She left.", "Call her.")]


def lines(folder: Path, name: str = "log.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def steady(folder: Path) -> list[dict[str, Any]]:
    """The log without what is never the same twice."""
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in lines(folder)]


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
    log = lines(tmp_path)
    assert [row["step"] for row in log] == [0, 1, 2, 3, 4]
    assert set(log[0]) == {"step"} | {k for k in log[0] if k.startswith("dev/")}
    assert ["dev/reward" in row for row in log] == [True, False, False, True, True]
    row = log[1]
    shares = row["share_insert"] + row["share_replace"] + row["share_keep"]
    assert shares == pytest.approx(1)
    assert row["kl_k3"] >= 0
    assert row["kl/value"] == 0.1
    assert log[2]["kl/value"] != 0.1
    assert {"rewards/kindness", "rewards/brevity", "position_entropy", "grad_norm"} <= set(row)
    assert {"seconds_sampling", "seconds_rewards", "seconds_reference", "seconds_update"} <= set(
        row
    )
    samples = lines(tmp_path, "samples.jsonl")
    assert [sample["step"] for sample in samples] == [2, 2, 2, 4, 4, 4]
    assert [rows for _, rows in shown] == [samples[:3], samples[3:]]
    assert shown[0][0].startswith("step 2: reward ")
    assert samples[0]["rewards"].keys() == {"kindness", "brevity"}
    assert (tmp_path / "curves.png").stat().st_size > 10_000


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


def same_weights(one: Any, other: Any) -> bool:
    others = dict(other.module.named_parameters())
    return all(torch.equal(p, others[name]) for name, p in one.module.named_parameters())


@pytest.mark.parametrize(
    ("kind", "estimator"),
    [
        ("toy", "leave_one_out"),
        ("toy", "moving_average"),
        ("toy", "ppo"),
        ("tiny", "leave_one_out"),
    ],
)
def test_stopped_by_a_signal_it_goes_on_bit_for_bit(
    kind: str, estimator: str, tmp_path: Path
) -> None:
    class Stopping:
        """A sum whose process is asked to stop while it scores the sixth step."""

        def __init__(self) -> None:
            self.sum, self.left = rewards(), 6
            self.state_dict, self.load_state_dict = self.sum.state_dict, self.sum.load_state_dict

        def score(self, **columns: Any) -> Any:
            self.left -= columns["update"]
            if not self.left:
                signal.raise_signal(signal.SIGTERM)
            return self.sum.score(**columns)

    whole, result = run(tmp_path / "whole", 9, kind, estimator=estimator)
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path / "cut", 9, kind, estimator=estimator, reward=Stopping())
    assert stopped.value.code == 0
    assert lines(tmp_path / "cut")[-1]["step"] == 6
    again, resumed = run(tmp_path / "cut", 9, kind, estimator=estimator)
    assert same_weights(whole, again)
    assert steady(tmp_path / "cut") == steady(tmp_path / "whole")
    assert lines(tmp_path / "cut", "samples.jsonl") == lines(tmp_path / "whole", "samples.jsonl")
    assert len(resumed.rows) == len(result.rows)


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}


def test_killed_it_goes_on_from_its_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    whole, _ = run(tmp_path / "whole", 9)
    command = [sys.executable, "-m", PROGRAM, "toy", str(tmp_path / "cut")]
    killed = subprocess.run([*command, "9", "7"], cwd=ROOT, env=environment(), capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert lines(tmp_path / "cut")[-1]["step"] == 6  # two steps after the checkpoint
    assert lines(tmp_path / "cut", "samples.jsonl")[-1]["step"] == 6
    again, _ = run(tmp_path / "cut", 9)
    assert same_weights(whole, again)
    assert steady(tmp_path / "cut") == steady(tmp_path / "whole")
    assert lines(tmp_path / "cut", "samples.jsonl") == lines(tmp_path / "whole", "samples.jsonl")


@pytest.mark.parametrize("kind", ["toy", "tiny"])
def test_two_processes_do_the_work_of_one(kind: str, tmp_path: Path) -> None:
    run(tmp_path / "one", 5, kind)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m"]
    rest = [PROGRAM, kind, str(tmp_path / "two"), "5"]
    done = subprocess.run(
        [*command, *rest],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    one, two = steady(tmp_path / "one"), steady(tmp_path / "two")
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        if a["step"] == 1:  # the policy is the reference still: its KL is rounding, a sum of ±1e-7
            assert abs(a.pop("kl_k1") - b.pop("kl_k1")) < 1e-5
        assert b == pytest.approx(a, rel=1e-4, abs=1e-6)
    checkpoints = [folder / "checkpoints/step_00000005" for folder in tmp_path.iterdir()]
    assert all(checkpoint.is_dir() for checkpoint in checkpoints)


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


def test_other_settings_do_not_go_on(tmp_path: Path) -> None:
    run(tmp_path, 1, same={"learning_rate": 1})
    with pytest.raises(UserError, match="learning_rate was 1 and is now 2"):
        run(tmp_path, 2, same={"learning_rate": 2})


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
