"""A small training run as a program: to be killed, resumed, and shared by processes.

python -m tests.policies.training.reinforce.run KIND OUTPUT STEPS [KILL_AT]
torchrun --nproc_per_node 2 -m tests.policies.training.reinforce.run KIND OUTPUT STEPS
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from policies.training.contracts import Result
from rewards.reward_sum import RewardSum, Term
from rewards.terms.kl import AdaptiveController, KLPenalty
from rewriting.exchange import Exchange
from tests.policies.training.flat import train_reinforce
from tests.policies.training.toy_agent import ToyAgent

EXCHANGES = [
    Exchange("I failed.", "Study harder. It helps. Trust me.", id="a"),
    Exchange("She left.", "Call her.", id="b"),
    Exchange("I am so tired.", "Sleep.", id="c"),
    Exchange("He shouts.", "Leave. Now.", id="d"),
    Exchange("Nobody calls.", "Call them.", id="e"),
]


def kindness(completions: Any, **_: Any) -> list[float]:
    return [float(text.count("Oh dear.")) for text in completions]


def brevity(completions: Any, response_post: Any, **_: Any) -> list[float]:
    pairs = zip(completions, response_post, strict=True)
    return [float(len(before) - len(after)) for after, before in pairs]


def rewards() -> RewardSum:
    """With a running scale, which is part of a checkpoint and the same in all processes."""
    return RewardSum({"kindness": Term(kindness, 1.0), "brevity": Term(brevity, 0.1, "whiten")})


def make(kind: str) -> Any:
    if kind == "toy":
        return ToyAgent()
    from tests.policies.editing.tiny_agents import tiny_agent

    agent = tiny_agent(span_length=2, max_edits=2)
    agent.freeze_reference()
    return agent


def run(output: Path, steps: int, kind: str = "toy", **options: Any) -> tuple[Any, Result]:
    agent = make(kind)
    settings: dict[str, Any] = {
        "batch_size": 4,
        "num_samples": 3,
        "estimator": "leave_one_out",
        "kl": KLPenalty(AdaptiveController(0.1, target=0.5, horizon=50)),
        "entropy_weight": 0.01,
        "span_length": 2,
        "max_edits": 2,
        "learning_rate": 0.05 if kind == "toy" else 0.001,
        "micro_batch_size": 5,
        "dev_exchanges": EXCHANGES[:3],
        "eval_every": 3,
        "save_every": 4,
        "show_every": 3,
        "on_samples": None,
        "reward": rewards(),
        **options,
    }
    reward = settings.pop("reward")
    result = train_reinforce(
        agent, reward, EXCHANGES, output=output, accelerator=Accelerator(), steps=steps, **settings
    )
    return agent, result


class Deadly(RewardSum):
    """Kills its own process when it is asked for the so-manyth time."""

    def __init__(self, kill_at: int) -> None:
        super().__init__(rewards().terms)
        self.left = kill_at

    def score(self, **columns: Any) -> Any:
        self.left -= columns.get("update", False)
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score(**columns)


if __name__ == "__main__":
    kind, output, steps, *rest = sys.argv[1:]
    run(Path(output), int(steps), kind, **({"reward": Deadly(int(rest[0]))} if rest else {}))
