"""The card of `train.py partner`: how the policy was trained, and how it does on dev."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recipes.shared.cards import command
from recipes.shared.reinforcement import before_and_after

if TYPE_CHECKING:
    from recipes.train.partner.recipe import Config


def card(config: Config, figures: dict[str, Any]) -> str:
    starts = [config.from_policy] if config.from_policy else []
    starts += [f"{config.warm_steps} steps of warm start"] if config.warm_steps else []
    return CARD.format(
        model=figures["backbone"],
        data=config.data,
        train=figures["rows"]["train"],
        rewards=config.rewards,
        estimator=config.estimator,
        steps=config.steps,
        batch=config.batch_size,
        samples=config.num_samples,
        start=", then ".join(starts),
        command=command("partner", config),
        results=before_and_after(figures),
    )


CARD = """# partner: an agent that rewrites a reply sentence by sentence

PARTNER (arXiv 2101.07714) on `{model}`: a position head says where to insert or replace a sentence,
or that nothing is to be changed; the language model says the sentence.

- Data: {data}, the train part of it ({train} exchanges), split by seeker.
- Start: {start}. Then {steps} steps of reinforcement learning ({estimator}), {batch} exchanges a
  step, {samples} rewrites of each.
- Rewards: `{rewards}`
- Command: `{command}`

## Results
{results}

## Limits
Trained on English peer support, with a reward that reads mostly the surface: it may be kind in the
wrong place. What it writes has to be read by a person before anybody in distress sees it. Not
validated for clinical use.
"""
