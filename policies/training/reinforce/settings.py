"""The hyperparameters of REINFORCE, each written once: default, help, bounds."""

from __future__ import annotations

from dataclasses import dataclass

from policies.training.settings import PolicySettings
from rewriting.runtime.settings import setting


@dataclass(frozen=True, kw_only=True)
class Settings(PolicySettings):
    """The hyperparameters of `train`. batch_size counts exchanges, micro_batch_size actions."""

    num_samples: int = setting(4, "Number of rewrites sampled for each exchange.", least=1)
    sentences_per_position: int = setting(
        1,
        "How many samples of an exchange share a first position: it is credited with their mean, "
        "each sentence with its lead over the others. 1: one credit for both.",
        least=1,
    )
    estimator: str = setting(
        "leave_one_out",
        "How advantages are estimated: leave_one_out, moving_average (the PARTNER paper's) or ppo.",
        choices=("leave_one_out", "moving_average", "ppo"),
    )
    inner_epochs: int = setting(
        1, "With estimator ppo: how many epochs are trained on each batch of samples.", least=1
    )
    clip: float = setting(
        0.2,
        "With estimator ppo: how far the probability ratio of a token may move from 1 before it is "
        "clipped.",
        least=0,
    )
    baseline_decay: float = setting(
        0.9, "With estimator moving_average: decay of the average reward.", least=0, greatest=0.9999
    )
    normalise: bool = setting(False, "Divide the advantages by their root mean square.")
    entropy_weight: float = setting(
        0.0, "Weight of the entropy bonus for the choice of a position, per nat.", least=0
    )
    span_length: int = setting(4, "Number of sentences that the policy sees at once.", least=1)
    max_edits: int = setting(1, "Maximum number of edits per span.", least=1)
