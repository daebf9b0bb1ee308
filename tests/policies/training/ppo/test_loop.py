"""The loop learns, and logs what it does."""

import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator

from rewards.reward_sum import RewardSum, Term
from rewards.terms.kl import FixedController, KLPenalty
from rewriting.errors import UserError
from tests.policies.generating.tiny_generators import (
    EXCHANGES,
    ending_early,
    tiny_generator,
    tiny_model,
)
from tests.policies.training.documented import check_figures
from tests.policies.training.flat import train_ppo as train
from tests.policies.training.ppo.run import rewards, run
from tests.policies.training.resuming import check_log_of_four_steps, lines, same_weights, steady

ROOT = Path(__file__).parents[4]


# ---- learning


@pytest.mark.parametrize(("kind", "adapter"), [("sharp t5", "prefix"), ("llama", "lora")])
def test_the_best_response_is_found(kind: str, adapter: str, tmp_path: Path) -> None:
    """Two capital letters. The T5 begins with small ones nearly always."""
    sizes = {"max_new_tokens": 2, "num_virtual_tokens": 8, "rank": 4}
    generator = tiny_generator(kind, adapter=adapter, noise=0.0, **sizes)

    def letters(completions: Any, **_: Any) -> list[float]:
        return [sum(letter.isupper() for letter in text) / 2 for text in completions]

    result = train(
        generator,
        RewardSum({"letters": Term(letters, 1.0)}),
        EXCHANGES,
        output=tmp_path,
        accelerator=Accelerator(cpu=True),
        steps=30,
        batch_size=16,
        minibatch_size=16,
        micro_batch_size=16,
        learning_rate=0.1,
        max_grad_norm=10.0,
        show_every=1000,
        save_every=1000,
        on_samples=None,
    )
    rewards_of = [row["reward"] for row in result.rows]
    assert sum(rewards_of[:2]) / 2 < 0.45
    assert sum(rewards_of[-5:]) / 5 > 0.8


def test_a_high_price_keeps_the_policy_at_the_reference(tmp_path: Path) -> None:
    def far(beta: float) -> float:
        kl = KLPenalty(FixedController(beta))
        _, result = run(tmp_path / str(beta), 8, kl=kl, learning_rate=0.03)
        first = result.rows[1]
        assert first["kl_k1"] == pytest.approx(0, abs=1e-3)  # sampled and teacher-forced agree
        assert 0 <= first["kl_k3"] < 1e-5
        assert first["kl/value"] == beta
        return sum(row["kl_k3"] for row in result.rows[-3:]) / 3

    assert far(0.0) > 4 * far(10.0)


# ---- figures


def test_the_log_of_a_step(tmp_path: Path) -> None:
    shown: list[Any] = []
    run(tmp_path, 4, on_samples=lambda title, rows: shown.append((title, rows)))
    log = check_log_of_four_steps(tmp_path, shown)
    assert log[1]["updates"] == 4  # two epochs of two minibatches
    samples = lines(tmp_path, "samples.jsonl")
    assert samples[0]["rewards"].keys() == {"vowels", "brevity", "repetition"}


def test_every_figure_is_explained(tmp_path: Path) -> None:
    def halves(completions: Any, log_extra: Any, **_: Any) -> list[float]:
        log_extra("first", [0.5] * len(completions))
        return [float(len(text)) for text in completions]

    run(tmp_path, 1, max_update_kl=1e-9, reward=RewardSum({"halves": Term(halves, 1.0)}))
    check_figures({name for row in lines(tmp_path) for name in row}, "ppo.md")


def test_the_encoder_reads_a_context_once_in_a_step(tmp_path: Path) -> None:
    """For sampling, reference, values and all epochs together."""
    generator = ending_early(tiny_generator())
    generator.freeze_reference()
    read: list[int] = []
    encoder = generator.model.model.get_encoder()
    encoder.register_forward_hook(lambda module, inputs, output: read.append(len(output[0])))
    sizes = {"batch_size": 4, "minibatch_size": 2, "inner_epochs": 3}
    run(tmp_path, 2, generator=generator, dev_exchanges=(), **sizes)
    assert sum(read) == 2 * 4


def test_a_policy_may_rule_out_what_it_said(tmp_path: Path) -> None:
    """With top_p below 1 and no reference: the figures stay numbers."""
    sizes = {"steps": 6, "batch_size": 4, "minibatch_size": 2}
    options: dict[str, Any] = {"output": tmp_path, "accelerator": Accelerator(cpu=True)}
    generator = tiny_generator(top_p=0.5)
    train(generator, rewards(), EXCHANGES, learning_rate=0.3, on_samples=None, **sizes, **options)
    assert all(math.isfinite(value) for row in lines(tmp_path) for value in row.values())
    assert any(row["update_kl"] > 0 for row in lines(tmp_path))


# ---- minibatches, micro-batches


def test_micro_batches_change_no_loss(tmp_path: Path) -> None:
    run(tmp_path / "a", 2, micro_batch_size=1)
    run(tmp_path / "b", 2, micro_batch_size=100)
    for a, b in zip(steady(tmp_path / "a"), steady(tmp_path / "b"), strict=True):
        assert a == pytest.approx(b, rel=1e-4, abs=1e-5)


def test_a_policy_that_goes_too_far_is_stopped(tmp_path: Path) -> None:
    _, free = run(tmp_path / "free", 2, learning_rate=0.05, inner_epochs=4)
    _, held = run(tmp_path / "held", 2, learning_rate=0.05, inner_epochs=4, max_update_kl=1e-6)
    assert free.rows[1]["updates"] == 8
    # The first minibatch finds the policy where it sampled, the second one does not.
    assert held.rows[1]["updates"] == 1


def test_responses_without_a_reward_teach_nothing(tmp_path: Path) -> None:
    silent = RewardSum({"silent": Term(lambda completions, **_: [None] * len(completions), 1.0)})
    generator, result = run(tmp_path, 2, reward=silent)
    assert all(row["advantage"] == row["updates"] == 0 for row in result.rows[1:])
    assert "reward" not in result.rows[1]
    fresh = dict(tiny_generator().module.named_parameters())
    named = generator.module.named_parameters()
    assert all(torch.equal(p, fresh[name]) for name, p in named if name in fresh)


def test_the_best_dev_reward_is_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = {"eval_every": 1, "learning_rate": 0.3, "kl": None}
    generator, result = run(tmp_path, 4, keep_best=True, **options)
    measured = {row["step"]: row["dev/reward"] for row in result.rows}
    assert measured[result.step] == max(measured.values())
    again, repeated = run(tmp_path, 4, keep_best=True, **options)  # finished: nothing is trained
    assert repeated == result
    assert same_weights(generator, again)


def test_collapse_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    flat = RewardSum({"flat": Term(lambda completions, **_: [1.0] * len(completions), 1.0)})
    with caplog.at_level(logging.WARNING, logger="policies.training.display"):
        sizes = {"batch_size": 2, "minibatch_size": 2, "inner_epochs": 1}
        run(tmp_path, 22, reward=flat, dev_exchanges=(), show_every=100, save_every=100, **sizes)
    said = [r.getMessage() for r in caplog.records if "same reward" in r.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("step 20: all responses get the same reward")


# ---- what cannot work


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be 1 or more, not 0"),
        ({"micro_batch_size": 0}, "micro_batch_size must be 1 or more"),
        ({"eval_every": 0}, "eval_every must be 1 or more"),
        ({"save_every": 0}, "save_every must be 1 or more"),
        ({"show_every": 0}, "show_every must be 1 or more"),
        ({"minibatch_size": 9}, "does not fit into a batch of 8"),
        ({"keep_best": True, "dev_exchanges": []}, "give dev exchanges"),
    ],
)
def test_settings_that_cannot_work(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        run(tmp_path, 1, **options)


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from policies.generating import generator
    from policies.training.ppo import loop
    from tests.test_docs import run_page

    real, few = loop.train, {"steps": 1, "batch_size": 4, "minibatch_size": 4, "inner_epochs": 1}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generator, "load_model", lambda name, **_: tiny_model("t5"))
    monkeypatch.setattr(
        loop,
        "train",
        lambda generator, reward, rows, settings, **options: real(
            generator, reward, rows, replace(settings, **few), on_samples=None, **options
        ),
    )
    assert run_page(ROOT / "docs/ppo.md", tmp_path) == 1
    assert lines(tmp_path / "runs/short")[0]["rewards/short"] <= 0
    assert (tmp_path / "runs/short/policy/policy.json").is_file()


def test_no_exchanges_are_the_users_mistake(tmp_path: Path) -> None:
    options: dict[str, Any] = {"output": tmp_path, "accelerator": Accelerator(cpu=True), "steps": 1}
    with pytest.raises(UserError, match="no exchanges to train on"):
        train(tiny_generator(), rewards(), [], **options)
