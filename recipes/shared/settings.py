"""What the recipes of reinforcement learning share: settings, the accelerator, the KL penalty."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from rewriting.errors import UserError
from rewriting.runtime.models.options import ModelOptions
from rewriting.runtime.settings import lasting, setting

# Weights by the audit of EPITOME's dev part (docs/results/reward.md): contrast does the work, and
# the other terms keep what it does not see: levels of empathy, coherence, repetition, hurt. Fluency
# is a logarithm, since 1 / perplexity pays most for the stock phrases that a language model knows.
# Sense takes off what is about the post and wrong about it, which contrast pays for: more than
# contrast can give, or the agent says false things with the post's words.
PARTNER_REWARDS = (
    "{empathy_change: 1.0, contrast: 1.0, fluency: {weight: 0.3, log: true}, coherence: 2.0, "
    "repetition: 1.0, kindness: 1.0, sense: 16.0, edit_size: 0, specificity: 0}"
)
"""What `train.py partner` rewards, `rewriting rewrite` ranks candidates by and `evaluate.py audit`
audits, unless told otherwise."""
LENDING_SENSE = "sense: {weight: 64.0, floor: 0.85}"
LENDING_REWARDS = PARTNER_REWARDS.replace("sense: 16.0", LENDING_SENSE)
"""The same for policies that lend sentences: what was written for somebody else has to be surer to
be welcome here than what was written for this post."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Settings that both recipes of reinforcement learning have."""

    kl_weight: float = setting(
        0.05,
        "Weight of the KL penalty that keeps the policy near its start (the reference), per nat; "
        "0: no penalty.",
        least=0,
    )
    kl_target: float = setting(
        0.0,
        "KL per sample that the KL penalty's weight is steered towards, in nats; 0: the weight "
        "stays fixed.",
        least=0,
    )
    kl_horizon: float = setting(
        0.0,
        "With kl_target: horizon of the steering, in samples; 0: 1/35 of the run. A KL a fifth off "
        "target doubles or halves the weight in 3.5 horizons.",
        least=0,
    )
    dev_rows: int = setting(
        64, "Number of dev exchanges that each measurement uses; 0: dev is not measured.", least=0
    )
    temperature: float = setting(
        0.7,
        "Sampling temperature that the saved policy is used with; training does not use it.",
        above=0,
        may_change=True,
    )
    top_p: float = setting(
        0.9,
        "Top-p (nucleus sampling) that the saved policy is used with; training does not use it.",
        above=0,
        greatest=1,
        may_change=True,
    )
    reward_batch_size: int = setting(
        0,
        "How many texts a reward model reads at once; 0: 8 on a CPU, 64 on a GPU.",
        least=0,
        may_change=True,
    )
    half: bool = setting(
        True, "Store the policy's weights in float16, half the size of float32.", may_change=True
    )
    report_to: str = setting(
        "",
        "Experiment trackers, separated by commas: tensorboard, wandb, trackio; '': none.",
        may_change=True,
    )
    timeout_minutes: float = setting(
        30.0,
        "How many minutes a process waits for the others before the run ends with an error.",
        above=0,
        may_change=True,
    )


@dataclass(frozen=True, kw_only=True)
class Edited:
    """Settings of the recipes whose policy edits replies, after a warm start."""

    keep_crisis: bool = setting(False, "Also train on posts that the safety gate calls a crisis.")
    identifier: str = setting(
        "in-context",
        "Identifier that measures empathy: in-context, grounded, epitome, a folder, or "
        "ensemble:NAME,NAME.",
    )
    rewards: str = setting(
        PARTNER_REWARDS,
        "Reward terms and their weights, as YAML; weight 0 only logs a term. path.py:function "
        "names one of your own.",
    )
    warm_steps: int = setting(0, "Steps of the warm start; 0: none.", least=0)
    warm_batch_size: int = setting(
        16, "Examples per step of the warm start, over all processes.", least=1
    )
    max_empathy: int = setting(
        6,
        "Train only on replies with at most this total empathy, 0 to 6; unlabelled replies count "
        "as 0.",
        least=0,
    )


def columns_field() -> Any:
    """The setting `columns` of recipes that read files of exchanges."""
    return setting(
        "",
        "What your files call our columns, where the names differ: "
        "seeker_post=post,response_post=reply.",
        may_change=True,
    )


def model_options(config: Any, *, whole_model: bool = False) -> ModelOptions:
    """How the recipe's language model is loaded, checked. whole_model: it is trained itself."""
    options = ModelOptions(**{one.name: getattr(config, one.name) for one in fields(ModelOptions)})
    options.check(whole_model=whole_model)
    return options


def same_settings(config: Any, *chosen_afterwards: str) -> dict[str, Any]:
    """The settings that a supervised run must share with the run it goes on from: all but its
    folder, what may change, and what is chosen after training."""
    left_out = ("output", *chosen_afterwards)
    return {name: value for name, value in lasting(config).items() if name not in left_out}


def kl_penalty(config: Any) -> Any:
    """The KL penalty, its weight fixed or steered to `kl_target`; None where there is none."""
    from rewards.terms import kl

    return kl.kl_penalty(
        config.kl_weight,
        target=config.kl_target,
        horizon=config.kl_horizon,
        num_responses=config.steps * config.batch_size * getattr(config, "num_samples", 1),
    )


def check_kl(config: Any) -> None:
    """Refuse a target where there is no weight to steer."""
    if config.kl_target and not config.kl_weight:
        raise UserError(
            "kl_target steers the KL penalty's weight: set kl_weight, its first value, above 0."
        )
