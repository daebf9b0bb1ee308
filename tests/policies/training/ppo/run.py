"""A small PPO run as a program: to be killed, resumed, and shared by processes.

python -m tests.policies.training.ppo.run OUTPUT STEPS [KILL_AT]
torchrun --nproc_per_node 2 -m tests.policies.training.ppo.run OUTPUT STEPS
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from policies.generating.generator import Generator
from policies.training.contracts import Result
from rewards.reward_sum import RewardSum, Term
from rewards.terms.kl import AdaptiveController, KLPenalty
from rewards.terms.repetition import Repetition
from tests.policies.generating.tiny_generators import EXCHANGES, ending_early, tiny_generator
from tests.policies.training.flat import train_ppo


def vowels(completions: Any, **_: Any) -> list[float]:
    return [float(sum(letter in "aeiou" for letter in text)) for text in completions]


def brevity(completions: Any, response_post: Any, **_: Any) -> list[float]:
    pairs = zip(completions, response_post, strict=True)
    return [float(len(before) - len(after)) for after, before in pairs]


def rewards() -> RewardSum:
    """With a running scale, which is part of a checkpoint and the same in all processes.

    And with a term that compares the responses of a batch, whoever sampled them.
    """
    terms = {"vowels": Term(vowels, 1.0), "brevity": Term(brevity, 0.1, "whiten")}
    return RewardSum(terms | {"repetition": Term(Repetition(1, across_batch=True), 0.5)})


def run(
    output: Path, steps: int, kind: str = "t5", adapter: str = "prefix", **options: Any
) -> tuple[Generator, Result]:
    """options: of `train`, and `generator`, if it is to be another one."""
    generator = options.pop("generator", None) or ending_early(
        tiny_generator(kind, adapter=adapter)
    )
    settings: dict[str, Any] = {
        "batch_size": 8,
        "minibatch_size": 4,
        "micro_batch_size": 4,
        "inner_epochs": 2,
        "kl": KLPenalty(AdaptiveController(0.1, target=0.5, horizon=50)),
        "learning_rate": 0.003,
        "end_penalty": 0.1,
        "dev_exchanges": EXCHANGES[:3],
        "eval_every": 3,
        "save_every": 2,
        "show_every": 2,
        "on_samples": None,
        "reward": rewards(),
    }
    settings |= options
    reward = settings.pop("reward")
    result = train_ppo(
        generator,
        reward,
        EXCHANGES,
        output=output,
        accelerator=settings.pop("accelerator", None) or Accelerator(cpu=True),
        steps=steps,
        **settings,
    )
    return generator, result


class Killing:
    """A sum whose process is killed while it scores a step."""

    def __init__(self, step: int) -> None:
        self.sum, self.left = rewards(), step
        self.state_dict, self.load_state_dict = self.sum.state_dict, self.sum.load_state_dict

    def score(self, **columns: Any) -> Any:
        self.left -= columns["update"]
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.sum.score(**columns)


if __name__ == "__main__":
    folder, steps, *kill_at = sys.argv[1:]
    options = {"reward": Killing(int(kill_at[0]))} if kill_at else {}
    run(Path(folder), int(steps), **options)
