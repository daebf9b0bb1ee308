"""`train.py emprl`, really run: both stages on tiny models, stopped and resumed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from policies.generating.generator import Generator
from policies.named import load_bare_policy
from recipes.entry import run_training
from recipes.train.emprl.recipe import Config, run
from recipes.train.emprl.sft import conversations
from rewards.terms.levels.level_alignment import LevelAlignment
from rewriting import UserError
from tests.recipes.train.emprl.test_shipped import ROOT
from tests.recipes.train.emprl.toys import ROWS, changed, flags, log, weights
from tests.rewards.fakes import FakeEncoder
from tests.tiny_lm import write_tiny_llama

pytestmark = pytest.mark.usefixtures("identifier")


def test_both_stages_leave_policies_that_respond(config: Config, tmp_path: Path) -> None:
    run_training(["emprl", *flags(config)])
    folder = tmp_path / "run"
    assert [row["step"] for row in log(folder)] == [0, 1, 2, 3]
    assert log(folder)[1]["kl_k1"] == pytest.approx(0, abs=1e-4)
    assert "rewards/level_alignment" in log(folder)[1]
    for policy in (folder / "sft" / "policy", folder / "policy"):
        text = (policy / "README.md").read_text(encoding="utf-8")
        assert "python train.py emprl --data" in text
        assert "A person" in text or "a person" in text
        rows = conversations(config.data)["test"][:2]
        rewrites = load_bare_policy(str(policy)).rewrite(rows, seed=0)
        assert [one.exchange for one in rewrites] == rows
        assert all(len(one.rewritten_response) <= 10 for one in rewrites)  # letters are tokens
    sft, ppo = weights(folder / "sft"), weights(folder)
    assert any(not torch.equal(sft[key], ppo[key]) for key in sft)
    # The first stage is what the second stays close to, in the same folder.
    reference = load_file(folder / "policy" / "reference" / "adapter_model.safetensors")
    for key, tensor in sft.items():
        assert torch.equal(tensor, reference[key])
    settings = json.loads((folder / "policy" / "policy.json").read_text())
    assert (settings["temperature"], settings["top_p"]) == (0.7, 0.9)
    # Finished, it may be saved anew for another use, or go on in less memory.
    run(changed(config, temperature=0.5, micro_batch_size=1, save_every=7))
    assert json.loads((folder / "policy" / "policy.json").read_text())["temperature"] == 0.5
    assert torch.equal(weights(folder)["prompt_embeddings"], ppo["prompt_embeddings"])
    with pytest.raises(UserError, match="cannot go on"):
        run(changed(config, learning_rate=1e-4))


def test_the_second_stage_alone_starts_from_a_folder(config: Config, tmp_path: Path) -> None:
    run(changed(config, stage="sft"))
    start = tmp_path / "run" / "sft" / "policy"
    again = changed(config, stage="ppo", from_policy=str(start), output=str(tmp_path / "again"))
    run(changed(again, kl_weight=0.0, num_virtual_tokens=99))
    # What it is comes from there, whatever a new one would be.
    card = (tmp_path / "again" / "policy" / "README.md").read_text(encoding="utf-8")
    assert "a prefix of 3 virtual tokens" in card
    assert f"by the identifier `{config.identifier}`" in card
    run(changed(config, stage="both", output=str(tmp_path / "both"), kl_weight=0.0))
    ours, theirs = weights(tmp_path / "again"), weights(tmp_path / "both")
    for key, tensor in ours.items():
        assert torch.allclose(tensor, theirs[key], atol=1e-5)
    assert "kl_k1" not in log(tmp_path / "again")[-1]


def test_a_causal_model_by_the_same_recipe(config: Config, tmp_path: Path) -> None:
    model = write_tiny_llama(tmp_path / "llama")
    run(changed(config, model=str(model), adapter="lora", rank=2, sft_learning_rate=1e-3))
    generator = Generator.load(tmp_path / "run" / "policy")
    assert not generator.model.is_seq2seq
    assert len(generator.respond(conversations(config.data)["dev"][:2], seed=0)) == 2


def test_levels_are_labelled_once_for_several_runs(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = changed(config, target_levels_file=str(tmp_path / "targets.jsonl"))
    run(shared)
    before = (tmp_path / "targets.jsonl").read_text()
    assert before.count("\n") == config.steps * config.batch_size + config.dev_rows
    run(changed(shared, output=str(tmp_path / "other"), kl_weight=0.1))
    assert (tmp_path / "targets.jsonl").read_text() == before


def test_targets_may_be_expected_from_the_conversation(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    class Watched(LevelAlignment):
        def __call__(self, **columns: Any) -> list[float | None]:
            seen.append(columns["explorations"])
            return super().__call__(**columns)

    monkeypatch.setattr("rewards.named.Models.sentence_encoder", FakeEncoder())
    monkeypatch.setattr("rewards.terms.levels.level_alignment.LevelAlignment", Watched)
    run(changed(config, stage="both", expected_targets=True, steps=8))
    dev, train = seen[0], seen[1]
    assert all(isinstance(level, int) for level in dev)  # measured against what people did
    assert all(sum(target) == pytest.approx(1.0) for target in train)
    with pytest.raises(UserError, match="expected_targets needs 10 conversations or more"):
        run(changed(config, expected_targets=True, steps=1, output=f"{config.output}_few"))
    assert not Path(f"{config.output}_few", "sft").exists()


def alone(config: Config, tmp_path: Path, **changes: Any) -> Config:
    """A config for a process of its own, without our identifier: levels and reward are given."""
    labelled = tmp_path / "labelled.jsonl"
    levels = {"emotional_reactions": 0, "interpretations": 0, "explorations": 0}
    labelled.write_text("".join(json.dumps(row | levels) + "\n" for row in ROWS), encoding="utf-8")
    reward = tmp_path / "own.py"
    reward.write_text(
        "def short(completions, **_):\n    return [-float(len(text)) for text in completions]\n"
    )
    rewards = json.dumps({f"{reward}:short": 1.0})
    return changed(config, data=str(labelled), rewards=rewards, **changes)


def test_two_processes_give_the_figures_of_one(config: Config, tmp_path: Path) -> None:
    one = alone(config, tmp_path, sft_steps=2, steps=2)
    run(one)
    two = changed(one, output=str(tmp_path / "two"))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment.pop("ACCELERATE_USE_CPU", None)  # as the documentation has it
    done = subprocess.run(
        [*command, "train.py", "emprl", *flags(two)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "2 processes" in done.stderr
    for name in ("sft", "."):
        for a, b in zip(log(tmp_path / "run" / name), log(tmp_path / "two" / name), strict=True):
            assert b == pytest.approx(a, rel=1e-4, abs=1e-4)


def test_a_run_goes_on_after_sigterm_bit_for_bit(config: Config, tmp_path: Path) -> None:
    every = dict.fromkeys(("save_every", "eval_every", "show_every"), 1000)
    long = alone(config, tmp_path, steps=24, output=str(tmp_path / "cut"), **every)
    command = [sys.executable, "train.py", "emprl", *flags(long)]
    # As many threads as here: how a sum is cut among them changes its last bits.
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    environment = os.environ | threads | {"CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    file = tmp_path / "cut" / "log.jsonl"
    deadline = time.monotonic() + 240
    while not (file.exists() and file.read_text().count("\n") > 1):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 0
    (checkpoint,) = (tmp_path / "cut" / "checkpoints").glob("step_*")
    assert 0 < int(checkpoint.name.removeprefix("step_")) < 24
    for folder in ("cut", "whole"):
        run(changed(long, output=str(tmp_path / folder)))
    assert log(tmp_path / "cut") == log(tmp_path / "whole")
    ours, theirs = weights(tmp_path / "cut"), weights(tmp_path / "whole")
    for key, tensor in ours.items():
        assert torch.equal(tensor, theirs[key])


def test_of_a_folder_the_train_file_alone_is_read(tmp_path: Path) -> None:
    header = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags"
    for name in ("train", "valid"):
        lines = [
            f"{name}{number},{turn},proud,I won,{turn % 2},{name} {number} says {turn},5,"
            for number in range(40)
            for turn in (1, 2, 3, 4)
        ]
        text = "\n".join([header, *lines]) + "\n"
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    parts = conversations(str(tmp_path))
    rows = parts["train"] + parts["dev"]
    assert len(rows) == 80
    assert all(row.response_post.startswith("train ") for row in rows)
    assert not {row.seeker_id for row in parts["train"]} & {row.seeker_id for row in parts["dev"]}
    assert {len(row.history) for row in rows} == {0, 2}
    assert len(conversations(str(tmp_path), max_rows=5)["train"]) == 5
    # So it is beside other sources: what is for testing stays unseen.
    both = conversations(f"{tmp_path}, sample")
    alone = conversations("sample")
    for name in ("train", "dev"):
        assert both[name] == parts[name] + alone[name]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stage": "third"}, "There is: both, sft, ppo"),
        ({"stage": "ppo", "from_policy": "nobody"}, "no trained policy 'nobody'"),
        ({"stage": "ppo", "from_policy": "bank"}, "bank is no generator"),
        ({"adapter": "magic"}, "there is no adapter 'magic'"),
        ({"adapter": "none"}, "nothing to train"),
        ({"steps": 0}, "^steps must be 1 or more, not 0"),
        ({"sft_steps": 0}, "sft_steps must be 1 or more"),
        ({"sft_micro_batch_size": 0}, "sft_micro_batch_size must be 1 or more"),
        ({"max_rows": -1}, "max_rows must be 0 or more"),
        ({"learning_rate": -1.0}, "learning_rate must be 0 or more"),
        ({"kl_weight": -0.1, "kl_target": 6.0}, "kl_weight must be 0 or more"),
        ({"max_grad_norm": 0.0}, "max_grad_norm must be above 0"),
        ({"lam": 95.0}, "lam must be from 0 to 1, not 95"),
        ({"gamma": 2.0}, "gamma must be from 0 to 1"),
        ({"sft_average": 1.5}, "sft_average must be from 0 to 1"),
        ({"kl_weight": 0.0, "kl_target": 6.0}, "set kl_weight, its first value"),
        ({"top_p": 2.0}, "top_p must be above 0 and at most 1, not 2"),
        ({"keep_best": True, "dev_rows": 0}, "keep_best compares dev rewards"),
        ({"minibatch_size": 5}, "does not fit into a batch of 4"),
        ({"rewards": "{applause: 1}"}, "there is no reward 'applause'"),
        ({"target_levels_file": "."}, "is a folder"),
    ],
)
def test_mistakes_are_named_before_anything_is_trained(
    config: Config, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        run(changed(config, **changes))
    assert not Path(config.output).exists()


def test_a_run_of_three_steps_moves_the_price_of_the_kl(config: Config) -> None:
    run(changed(config, kl_weight=0.05, kl_target=6.0))
    values = [row["kl/value"] for row in log(Path(config.output)) if "kl/value" in row]
    # Hardly any KL yet: an error of −0.2, and a horizon of 12 / 35 responses, less than a step's 4.
    assert values[:2] == pytest.approx([0.05, 0.04])
