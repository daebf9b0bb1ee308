"""What both algorithms are asked of: to stop, to go on bit for bit, and to share their work."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[3]


def lines(folder: Path, name: str = "log.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def steady(folder: Path) -> list[dict[str, Any]]:
    """The log without what is never the same twice."""
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in lines(folder)]


def same_weights(one: Any, other: Any) -> bool:
    others = dict(other.module.named_parameters())
    return all(torch.equal(p, others[name]) for name, p in one.module.named_parameters())


def same_logs(one: Path, other: Path) -> bool:
    """Whether two runs have logged and written the same."""
    samples = lines(one, "samples.jsonl") == lines(other, "samples.jsonl")
    return steady(one) == steady(other) and samples


def check_log_of_four_steps(folder: Path, shown: list[Any]) -> list[dict[str, Any]]:
    """The log of a run that showed samples every second step and measured dev every third.

    shown: title and rows of each showing. The log, for what is of one algorithm alone.
    """
    log = lines(folder)
    assert [row["step"] for row in log] == [0, 1, 2, 3, 4]
    assert set(log[0]) == {"step"} | {k for k in log[0] if k.startswith("dev/")}
    assert ["dev/reward" in row for row in log] == [True, False, False, True, True]
    assert log[1]["kl/value"] == 0.1
    assert log[2]["kl/value"] != 0.1
    times = {"seconds_sampling", "seconds_rewards", "seconds_reference", "seconds_update"}
    assert times <= set(log[1])
    samples = lines(folder, "samples.jsonl")
    assert [sample["step"] for sample in samples] == [2, 2, 2, 4, 4, 4]
    assert [rows for _, rows in shown] == [samples[:3], samples[3:]]
    assert shown[0][0].startswith("step 2: reward ")
    assert (folder / "curves.png").stat().st_size > 10_000
    return log


class Stopping:
    """A sum whose process is asked to stop while it scores one of its steps."""

    def __init__(self, rewards: Any, step: int) -> None:
        self.sum, self.left = rewards, step
        self.state_dict, self.load_state_dict = self.sum.state_dict, self.sum.load_state_dict

    def score(self, **columns: Any) -> Any:
        self.left -= columns["update"]
        if not self.left:
            signal.raise_signal(signal.SIGTERM)
        return self.sum.score(**columns)


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}


def on_two_processes(program: str, *arguments: str) -> None:
    """Run a module on two processes, to its end."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", "-m"]
    done = subprocess.run(
        [*command, program, *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
