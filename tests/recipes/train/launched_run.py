"""Recipes, one after another in the same processes: to be launched by torchrun or accelerate.

    torchrun --nproc_per_node 2 tests/recipes/train/launched_run.py JOBS.json
    accelerate launch --config_file configs/launch/fsdp.yaml … launched_run.py JOBS.json

A job is a recipe, its settings, and perhaps a signal that all processes get in the middle of a
step. After SIGTERM the run is started again; SIGKILL ends it all.
"""

import json
import os
import signal
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from accelerate import Accelerator

from rewards.identifiers import named
from rewards.reward_sum import RewardSum
from rewriting.runtime.processes import join_processes
from tests.recipes.train.grpo.sharded_run import take_cpus_for_gpus
from tests.recipes.words import Words


def run(job: dict[str, Any]) -> None:
    module = import_module(f"recipes.train.{job['recipe']}")
    config = module.Config(**job["config"])
    if job.get("signal"):
        raise_in_step(job["step"], signal.Signals[job["signal"]])
        with pytest.raises(SystemExit) as stopped:
            module.run(config)
        assert stopped.value.code == 0
    module.run(config)


def raise_in_step(step: int, number: signal.Signals) -> None:
    """Have this process get the signal while it scores the samples of a step, once."""
    score, left = RewardSum.score, [step]

    def counting(self: RewardSum, **columns: Any) -> Any:
        left[0] -= columns.get("update", False)
        if not left[0]:
            left[0] = -1
            os.kill(os.getpid(), number)
        return score(self, **columns)

    RewardSum.score = counting  # type: ignore[method-assign]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of libraries that look for the GPUs
    if {"ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"} & set(os.environ):
        take_cpus_for_gpus()
    else:
        join_processes()
    named.load_identifier = lambda name="words", **_: Words()  # type: ignore[assignment,misc]
    Accelerator.end_training = lambda self: None  # type: ignore[method-assign]  # more is to come
    file = Path(sys.argv[1])
    for job in json.loads(file.read_text()):
        run(job)
    state = Accelerator().state
    if state.is_main_process:
        file.with_suffix(".kind").write_text(f"{state.distributed_type} {state.num_processes}")
