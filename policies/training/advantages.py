"""Advantages: how much better a sample did than was to be expected.

Subtracting from a reward what does not depend on the sample's own actions leaves the policy
gradient's mean as it is and takes away most of its noise (Williams 1992). What differs is where the
expectation comes from: the other samples of the same exchange, or the steps before.

A reward may be NaN where no term applies to a sample: it then teaches nothing, advantage 0, and
counts in no mean.

Legend: N exchanges, G samples of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def leave_one_out(rewards_NG: Tensor) -> Tensor:
    """[N, G]: a reward minus the mean of the exchange's other samples (arXiv 2402.14740, RLOO).

    Easy and hard exchanges are compared with themselves, and no part of the sample's own reward is
    in its baseline, which a group mean (GRPO) has. 0 where there is no other sample.
    """
    known_NG = ~rewards_NG.isnan()
    filled_NG = rewards_NG.nan_to_num(nan=0.0)
    others_NG = known_NG.sum(dim=-1, keepdim=True) - known_NG.to(rewards_NG.dtype)
    mean_NG = (filled_NG.sum(dim=-1, keepdim=True) - filled_NG) / others_NG.clamp(min=1)
    return (filled_NG - mean_NG).masked_fill(~known_NG | (others_NG < 1), 0.0)


class MovingBaseline:
    """The moving average of the rewards of earlier steps: PARTNER's baseline (arXiv 2101.07714).

    One number for all exchanges, so it cannot know that one of them is easy. It needs no second
    sample. The first step has no step before it: there each sample is compared with all others.
    """

    def __init__(self, decay: float = 0.9) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"the decay of a moving average is in [0, 1), not {decay}")
        self.decay = decay
        self.value: float | None = None

    def advantages(self, rewards_NG: Tensor) -> Tensor:
        """[N, G]: rewards minus the average of the steps before. Then counts these in."""
        if self.value is None:
            advantages_NG = leave_one_out(rewards_NG.flatten()).view_as(rewards_NG)
        else:
            advantages_NG = (rewards_NG - self.value).nan_to_num(nan=0.0)
        if not rewards_NG.isnan().all():
            mean = float(rewards_NG.nanmean())
            before = mean if self.value is None else self.value
            self.value = self.decay * before + (1 - self.decay) * mean
        return advantages_NG

    def state_dict(self) -> dict[str, Any]:
        return {"value": self.value}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.value = state["value"]


def normalised(advantages_NG: Tensor) -> Tensor:
    """[N, G]: divided by their root mean square over the whole batch; all 0 stay 0.

    It makes the size of a step independent of the scale of the rewards. Not divided per exchange:
    that would make much of the exchanges in which hardly anything was at stake (arXiv 2503.20783).
    """
    size = advantages_NG.square().mean().sqrt()
    return advantages_NG / torch.where(size > 0, size, torch.ones_like(size))
