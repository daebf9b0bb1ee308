"""How much faster are two processes than one on a step of PARTNER, each with one thread?

    python benchmarks/two_processes.py [--exchanges 8] [--samples 4] [--steps 2] [--json OUT.json]

Starts the loop of policies/training/reinforce/loop.py twice under torchrun, with one process and
with two, as `train.py partner` does: the same policy, exchanges, rewards and reference. Both take
the same steps, to the same figures up to rounding; two processes share the exchanges of each.

Time is on the wall, of a whole step with all that processes tell each other: from where the rewards
of one step begin to where those of the next do. The first of these is not counted. This ratio
means something only on a machine that does nothing else, with a core for each process. Two figures
beside it help to read it: the same in seconds of the processor, of which the slower of two
processes counts, without what they wait for each other; and the most that two cores can do, which
plain matrix products show.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from recipes.train.partner.recipe import Config

MARK = 1.7


class Timed:
    """A reward that remembers when it was asked."""

    def __init__(self, reward: Any) -> None:
        self.reward = reward
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def score(self, **columns: Any) -> Any:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())
        return self.reward.score(**columns)


def worker(config: Config) -> dict[str, Any]:
    """In each of the processes: the seconds of the counted steps, and the rewards as a check."""
    from accelerate import Accelerator

    from policies.training.reinforce.loop import train
    from policies.training.reinforce.settings import Settings
    from recipes.shared.settings import kl_penalty
    from recipes.train.partner.recipe import start_agent
    from rewards.named import Models, build_rewards
    from rewriting.data import load_exchanges
    from rewriting.runtime.processes import join_processes
    from rewriting.runtime.settings import given

    join_processes()
    accelerator = Accelerator()
    accelerator.wait_for_everyone()
    limit = matrix_products()
    agent = start_agent(config)
    agent.freeze_reference()
    models = Models(identifier=config.identifier, language_model=agent.backbone)
    reward = Timed(build_rewards(config.rewards, models))
    result = train(
        agent,
        reward,
        list(load_exchanges(config.data)),
        given(Settings, config),
        output=Path(config.output),
        accelerator=accelerator,
        kl=kl_penalty(config),
        on_samples=None,
    )
    rewards = [row["reward"] for row in result.rows]
    spent = {"wall": counted(reward.wall), "cpu": counted(reward.cpu)}
    return spent | {"products": limit, "rewards": rewards}


def matrix_products(size: int = 768, count: int = 400) -> float:
    """Seconds that some matrix products take, of the size of a small model's."""
    import torch

    matrix = torch.rand(size, size)
    start = time.perf_counter()
    for _ in range(count):
        torch.mm(matrix, matrix)
    return time.perf_counter() - start


def counted(times: list[float]) -> float:
    """Mean seconds from one call to the next, without the first: models may still be loading."""
    found = [later - sooner for sooner, later in pairwise(times[1:])]
    return sum(found) / len(found)


def launch(config: Config, processes: int) -> dict[str, Any]:
    """What the first of so many processes answers, with the time of the slowest."""
    with tempfile.TemporaryDirectory() as folder:
        told = asdict(config) | {"output": folder}
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc_per_node", str(processes), __file__, "--worker", json.dumps(told)]
        threads = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        subprocess.run(command, check=True, env={**os.environ, **threads})
        answers = [json.loads(file.read_text()) for file in sorted(Path(folder).glob("answer*"))]
    slowest = {name: max(a[name] for a in answers) for name in ("wall", "cpu", "products")}
    return {**answers[0], **slowest}


def main() -> None:
    defaults = Config()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--exchanges", type=int, default=8, help="of a step, in all processes")
    parser.add_argument("--samples", type=int, default=defaults.num_samples, help="of an exchange")
    parser.add_argument("--steps", type=int, default=2, help="that are counted, after two others")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--set", type=json.loads, default={}, help="other settings of partner")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        answer = worker(Config(**options.worker))
        file = Path(options.worker["output"]) / f"answer{os.environ['RANK']}.json"
        file.write_text(json.dumps(answer))
        return
    sizes = {"batch_size": options.exchanges, "num_samples": options.samples}
    sizes |= {"steps": options.steps + 2, "save_every": 1000, "dev_rows": 0}
    config = Config(**(asdict(defaults) | sizes | options.set))
    answers = {processes: launch(config, processes) for processes in (1, 2)}
    seconds = {clock: {n: answers[n][clock] for n in answers} for clock in ("wall", "cpu")}
    ratios = {clock: means[1] / means[2] for clock, means in seconds.items()}
    ratios["matrix products"] = 2 * answers[1]["products"] / answers[2]["products"]
    for clock, means in seconds.items():
        print(f"seconds of a step ({clock}): one process {means[1]:.2f}, two {means[2]:.2f}")
    print(f"two are {ratios['wall']:.2f} × one (mark: at least {MARK}); ", end="")
    print(f"processor {ratios['cpu']:.2f} ×, matrix products {ratios['matrix products']:.2f} ×")
    gap = max(abs(a - b) for a, b in zip(*(answers[n]["rewards"] for n in (1, 2)), strict=True))
    print(f"largest difference of a step's mean reward: {gap:.1e}")
    if options.json:
        figures = {"exchanges": config.batch_size, "samples": config.num_samples}
        figures |= {"steps": options.steps, "seconds": seconds}
        figures |= {"ratios": ratios, "gap": gap}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
