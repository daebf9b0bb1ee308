"""The loop learns, and logs what it does."""

import logging
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator

from policies.ppo import train
from policies.ppo_log import METRICS, Outcome, headline, print_responses, summary
from policies.ppo_rollouts import targets_of
from policies.ppo_update import minibatches
from rewards.kl import FixedController, KLPenalty
from rewards.reward_sum import RewardSum, Term
from rewriting.errors import UserError
from tests.policies.ppo_run import lines, rewards, run, same_weights, steady
from tests.policies.tiny_generators import EXCHANGES, ending_early, tiny_generator, tiny_model

ROOT = Path(__file__).parent.parent.parent


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
    log = lines(tmp_path)
    assert [row["step"] for row in log] == [0, 1, 2, 3, 4]
    assert set(log[0]) == {"step"} | {k for k in log[0] if k.startswith("dev/")}
    assert ["dev/reward" in row for row in log] == [True, False, False, True, True]
    row = log[1]
    assert row["updates"] == 4  # two epochs of two minibatches
    assert row["kl/value"] == 0.1
    assert log[2]["kl/value"] != 0.1
    assert {"seconds_sampling", "seconds_rewards", "seconds_reference", "seconds_update"} <= set(
        row
    )
    samples = lines(tmp_path, "samples.jsonl")
    assert [sample["step"] for sample in samples] == [2, 2, 2, 4, 4, 4]
    assert [rows for _, rows in shown] == [samples[:3], samples[3:]]
    assert shown[0][0].startswith("step 2: reward ")
    assert samples[0]["rewards"].keys() == {"vowels", "brevity", "repetition"}
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_every_figure_is_explained_in_the_code_and_in_the_docs(tmp_path: Path) -> None:
    run(tmp_path, 1, target_kl=1e-9)
    known = {name.rstrip("*") for name in METRICS if name.endswith("*")}
    for name in {name for row in lines(tmp_path) for name in row}:
        assert name in METRICS or any(name.startswith(prefix) for prefix in known), name
    page = (ROOT / "docs/ppo.md").read_text(encoding="utf-8")
    documented = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert set(METRICS) <= documented


def test_figures_by_hand() -> None:
    outcomes = [
        Outcome(1.0, {"a": 1.0}, "Oh dear.", True, [-1.0, -2.0], [0.5, 0.5], [1.0, 2.0]),
        Outcome(None, {"a": None}, "oh  dear.", False, [-1.0] * 4, [0.0] * 4, [0.0] * 4),
        Outcome(3.0, {"a": 5.0}, "I see.", True, [-1.0], [1.0], [3.0]),
    ]
    assert summary(outcomes) == pytest.approx(
        {
            "reward": 2.0,
            "reward_std": 1.0,
            "rewards/a": 3.0,
            "response_tokens": 7 / 3,
            "response_words": 2.0,
            "unfinished": 1 / 3,
            "distinct_responses": 0.5,
            "entropy": 6 / 7,
        }
    )


def test_the_targets_of_a_batch_by_hand() -> None:
    """γ = λ = 1, β = 0.5, end penalty 2: an advantage is what is still to come less the value."""
    outcomes = [
        Outcome(4.0, {}, "a", True, [-1.0, -1.0], [0.5, 1.0], [], [-1.0, -3.0]),
        Outcome(None, {}, "b", True, [-1.0], [9.0], [], [-2.0]),
        Outcome(1.0, {}, "c", False, [-2.0], [0.0], [], [-1.0]),
    ]
    kl = KLPenalty(FixedController(0.5))
    targets, figures = targets_of(outcomes, kl, gamma=1.0, lam=1.0, whiten=False, end_penalty=2.0)
    assert targets.mask_BT.tolist() == [[True, True], [False, False], [True, False]]
    # Row 0: KL 0 and 2, so rewards 0 and 4 − 1. Row 2: KL −1, so 1 − 2 + 0.5.
    assert targets.return_BT.tolist() == [[3.0, 3.0], [0.0, 0.0], [-0.5, 0.0]]
    assert targets.advantage_BT.tolist() == [[2.5, 2.0], [0.0, 0.0], [-0.5, 0.0]]
    assert figures["kl_k1"] == pytest.approx((2 + 1 - 1) / 3)
    assert figures["kl_penalty"] == pytest.approx((1 + 0.5 - 0.5) / 3)
    assert figures["advantage"] == pytest.approx(5 / 3)
    assert figures["value"] == pytest.approx(0.5)


def test_a_reference_that_rules_a_token_out_is_an_error() -> None:
    outcome = Outcome(1.0, {}, "a", True, [-1.0], [0.0], [0.0], [-float("inf")])
    with pytest.raises(UserError, match="top_p 1"):
        targets_of([outcome], KLPenalty(FixedController(1.0)), gamma=1, lam=1, whiten=True)


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


def test_a_table_of_responses(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "seeker_post": "I failed.",
        "response_post": "Oh.",
        "rewritten_response": "Why?",
        "reward": 1.5,
        "rewards": {"a": None, "b": 2.0},
    }
    print_responses("step 3", [row])
    printed = capsys.readouterr().out
    assert "Why?" in printed
    assert "total 1.500" in printed
    assert "b 2.000" in printed
    assert headline({"step": 3, "reward": 0.25}) == "step 3: reward 0.250"


# ---- minibatches, micro-batches


def test_minibatches_take_one_row_of_every_block() -> None:
    found = minibatches(32, 8, seed=3)
    assert sorted(row for rows in found for row in rows) == list(range(32))
    assert [len(rows) for rows in found] == [8] * 4
    for rows in found:
        assert sorted(row // 4 for row in rows) == list(range(8))
    assert found != minibatches(32, 8, seed=4)
    odd = minibatches(7, 3, seed=0)
    assert sorted(row for rows in odd for row in rows) == list(range(7))
    assert max(len(rows) for rows in odd) <= 3


def test_micro_batches_change_no_loss(tmp_path: Path) -> None:
    run(tmp_path / "a", 2, micro_batch_size=1)
    run(tmp_path / "b", 2, micro_batch_size=100)
    for a, b in zip(steady(tmp_path / "a"), steady(tmp_path / "b"), strict=True):
        assert a == pytest.approx(b, rel=1e-4, abs=1e-5)


def test_a_policy_that_goes_too_far_is_stopped(tmp_path: Path) -> None:
    _, free = run(tmp_path / "free", 2, learning_rate=0.05, inner_epochs=4)
    _, held = run(tmp_path / "held", 2, learning_rate=0.05, inner_epochs=4, target_kl=1e-6)
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
    with caplog.at_level(logging.WARNING, logger="policies.ppo"):
        sizes = {"batch_size": 2, "minibatch_size": 2, "inner_epochs": 1}
        run(tmp_path, 22, reward=flat, dev_exchanges=(), show_every=100, save_every=100, **sizes)
    said = [r.getMessage() for r in caplog.records if "same reward" in r.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("step 20: all responses get the same reward")


def test_every_sign_has_words_of_its_own() -> None:
    from policies.collapse import SIGNS
    from policies.ppo_log import WARNINGS

    assert set(WARNINGS) == set(SIGNS) - {"keeps"}  # a generator never keeps


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
    from policies import generator, ppo
    from tests.test_docs import run_page

    few = {"steps": 1, "batch_size": 4, "minibatch_size": 4, "inner_epochs": 1, "on_samples": None}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generator, "load_model", lambda name, own: tiny_model("t5"))
    monkeypatch.setattr(ppo, "train", lambda *given, **options: train(*given, **options | few))
    assert run_page(ROOT / "docs/ppo.md", tmp_path) == 1
    assert lines(tmp_path / "runs/short")[0]["rewards/short"] <= 0
    assert (tmp_path / "runs/short/policy/policy.json").is_file()


def test_no_exchanges_are_the_users_mistake(tmp_path: Path) -> None:
    options: dict[str, Any] = {"output": tmp_path, "accelerator": Accelerator(cpu=True), "steps": 1}
    with pytest.raises(UserError, match="no exchanges to train on"):
        train(tiny_generator(), rewards(), [], **options)
