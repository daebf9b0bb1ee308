"""The hyperparameters of PPO, each written once: default, help, bounds."""

from __future__ import annotations

from dataclasses import dataclass

from policies.training.settings import PolicySettings
from rewriting.runtime.settings import setting


@dataclass(frozen=True, kw_only=True)
class Settings(PolicySettings):
    """The hyperparameters of `train`. All sizes count responses."""

    steps: int = setting(100, "Steps of PPO, each with its own batch of responses.", least=1)
    batch_size: int = setting(32, "Responses per step, over all processes.", least=1)
    minibatch_size: int = setting(8, "Responses per optimizer step, over all processes.", least=1)
    inner_epochs: int = setting(
        4, "How many epochs PPO trains on each batch of responses.", least=1
    )
    clip: float = setting(
        0.2,
        "How far the probability ratio of a token may move from 1 before it is clipped.",
        least=0,
    )
    value_clip: float = setting(
        0.2,
        "How far a value may move from its old estimate before it is clipped; 0: no limit.",
        least=0,
    )
    value_weight: float = setting(
        0.1, "Weight of the value loss; its gradient reaches the adapter too.", least=0
    )
    gamma: float = setting(1.0, "Discount factor per token; 1: no discount.", least=0, greatest=1)
    lam: float = setting(0.95, "λ of generalised advantage estimation (GAE).", least=0, greatest=1)
    whiten_advantages: bool = setting(True, "Normalise the advantages to mean 0 and variance 1.")
    max_update_kl: float = setting(
        0.0,
        "End the updates of a step once the KL per token from the policy that sampled exceeds 1.5 "
        "times this; 0: never.",
        least=0,
    )
    end_penalty: float = setting(
        0.0,
        "Penalty subtracted from the reward of a response that was cut off at its maximum length.",
        least=0,
    )
