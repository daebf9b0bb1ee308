"""The loop stops, goes on bit for bit, and shares its work among processes."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.policies.generating.tiny_generators import tiny_generator
from tests.policies.training.ppo.run import rewards, run
from tests.policies.training.resuming import (
    ROOT,
    Stopping,
    environment,
    lines,
    on_two_processes,
    same_logs,
    same_weights,
    steady,
)

PROGRAM = "tests.policies.training.ppo.run"


@pytest.mark.parametrize(("kind", "adapter"), [("t5", "prefix"), ("llama", "lora")])
def test_stopped_by_a_signal_it_goes_on_bit_for_bit(
    kind: str, adapter: str, tmp_path: Path
) -> None:
    whole, result = run(tmp_path / "whole", 5, kind, adapter)
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path / "cut", 5, kind, adapter, reward=Stopping(rewards(), 3))
    assert stopped.value.code == 0
    assert lines(tmp_path / "cut")[-1]["step"] == 3
    again, resumed = run(tmp_path / "cut", 5, kind, adapter)
    assert same_weights(whole, again)
    assert same_logs(tmp_path / "cut", tmp_path / "whole")
    assert len(resumed.rows) == len(result.rows)


def test_killed_it_goes_on_from_its_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    whole, _ = run(tmp_path / "whole", 5)
    command = [sys.executable, "-m", PROGRAM, str(tmp_path / "cut"), "5", "4"]
    # As many threads as here: how a sum is cut among them changes its last bits.
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    killed = subprocess.run(command, cwd=ROOT, env=environment() | threads, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert lines(tmp_path / "cut")[-1]["step"] == 3  # a step after the checkpoint
    again, _ = run(tmp_path / "cut", 5)
    assert same_weights(whole, again)
    assert same_logs(tmp_path / "cut", tmp_path / "whole")


def test_a_checkpoint_holds_both_adapters_and_the_value_head(tmp_path: Path) -> None:
    generator, _ = run(tmp_path, 2)
    from rewriting.runtime.training.checkpoints import load_checkpoint

    parts = load_checkpoint(tmp_path / "checkpoints/step_00000002")
    assert {"module", "reference", "optimizer", "kl", "reward", "log", "samples"} <= set(parts)
    named = dict(generator.module.named_parameters())
    for name, tensor in parts["module"].items():
        assert torch.equal(tensor, named[name])
    assert any(name.startswith("value_head.") for name in parts["module"])
    reference = generator.adapters.parameters("reference")
    assert all(map(torch.equal, parts["reference"].values(), reference))


def test_the_reference_of_a_checkpoint_counts(tmp_path: Path) -> None:
    """Whatever the caller gives: the policy is still compared with what it once was."""
    run(tmp_path, 2)
    generator = tiny_generator(noise=0.7)
    generator.freeze_reference()
    run(tmp_path, 2, generator=generator)
    started = tiny_generator().adapters.parameters("policy")
    assert all(map(torch.equal, generator.adapters.parameters("reference"), started))


def test_two_processes_do_the_work_of_one(tmp_path: Path) -> None:
    run(tmp_path / "one", 3)
    on_two_processes(PROGRAM, str(tmp_path / "two"), "3")
    one, two = steady(tmp_path / "one"), steady(tmp_path / "two")
    assert len(one) == len(two)
    assert all(0 < row["unfinished"] < 1 for row in one if row["step"])  # of different lengths
    for a, b in zip(one, two, strict=True):
        for row in (a, b):  # of dev exchanges a process compares its own
            row.pop("dev/rewards/repetition", None)
            row.pop("dev/reward", None)
            row.pop("dev/reward_std", None)
        if a["step"] == 1:  # the policy is the reference still: its KL is rounding, a sum of ±1e-7
            assert abs(a.pop("kl_k1") - b.pop("kl_k1")) < 1e-5
            assert abs(a.pop("kl_penalty") - b.pop("kl_penalty")) < 1e-5
        assert b == pytest.approx(a, rel=1e-4, abs=1e-5)
