"""The loop stops, goes on bit for bit, and shares its work among processes."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rewriting.errors import UserError
from tests.policies.training.reinforce.run import rewards, run
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

PROGRAM = "tests.policies.training.reinforce.run"


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
    whole, result = run(tmp_path / "whole", 9, kind, estimator=estimator)
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path / "cut", 9, kind, estimator=estimator, reward=Stopping(rewards(), 6))
    assert stopped.value.code == 0
    assert lines(tmp_path / "cut")[-1]["step"] == 6
    again, resumed = run(tmp_path / "cut", 9, kind, estimator=estimator)
    assert same_weights(whole, again)
    assert same_logs(tmp_path / "cut", tmp_path / "whole")
    assert len(resumed.rows) == len(result.rows)


def test_killed_it_goes_on_from_its_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    whole, _ = run(tmp_path / "whole", 9)
    command = [sys.executable, "-m", PROGRAM, "toy", str(tmp_path / "cut")]
    killed = subprocess.run([*command, "9", "7"], cwd=ROOT, env=environment(), capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert lines(tmp_path / "cut")[-1]["step"] == 6  # two steps after the checkpoint
    assert lines(tmp_path / "cut", "samples.jsonl")[-1]["step"] == 6
    again, _ = run(tmp_path / "cut", 9)
    assert same_weights(whole, again)
    assert same_logs(tmp_path / "cut", tmp_path / "whole")


@pytest.mark.parametrize("kind", ["toy", "tiny"])
def test_two_processes_do_the_work_of_one(kind: str, tmp_path: Path) -> None:
    run(tmp_path / "one", 5, kind)
    on_two_processes(PROGRAM, kind, str(tmp_path / "two"), "5")
    one, two = steady(tmp_path / "one"), steady(tmp_path / "two")
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        if a["step"] == 1:  # the policy is the reference still: its KL is rounding, a sum of ±1e-7
            assert abs(a.pop("kl_k1") - b.pop("kl_k1")) < 1e-5
        assert b == pytest.approx(a, rel=1e-4, abs=1e-6)
    checkpoints = [folder / "checkpoints/step_00000005" for folder in tmp_path.iterdir()]
    assert all(checkpoint.is_dir() for checkpoint in checkpoints)


def test_other_settings_do_not_go_on(tmp_path: Path) -> None:
    run(tmp_path, 1, same={"learning_rate": 1})
    with pytest.raises(UserError, match="learning_rate was 1 and is now 2"):
        run(tmp_path, 2, same={"learning_rate": 2})
