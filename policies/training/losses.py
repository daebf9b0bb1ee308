"""The losses of reinforcement learning, as pure functions. To be minimised: they carry the minus.

All are sums. Divided by the number of episodes, the first one's mean gradient is minus the
gradient of the expected reward, exactly; dividing by tokens instead would favour long sentences
that are bad and short ones that are good (arXiv 2503.20783).

Legend: B actions, T tokens of an action, its position as the first.
"""

from __future__ import annotations

import torch
from torch import Tensor


def policy_gradient(log_prob_BT: Tensor, advantage_B: Tensor, mask_BT: Tensor) -> Tensor:
    """−Σ advantage · log π(token), a scalar: REINFORCE (Williams 1992).

    advantage_B: no gradient flows into it. Masked places may hold anything.
    """
    _check(log_prob_BT, advantage_B, mask_BT)
    log_prob_B = log_prob_BT.masked_fill(~mask_BT, 0.0).sum(dim=-1)
    return -(advantage_B.detach() * log_prob_B).sum()


def clipped(
    log_prob_BT: Tensor,
    old_log_prob_BT: Tensor,
    advantage_B: Tensor,
    mask_BT: Tensor,
    clip: float,
) -> Tensor:
    """−Σ min(ρ·A, clip(ρ, 1 ± clip)·A) with ρ = π / π_old per token: PPO (arXiv 1707.06347).

    old_log_prob_BT: of the policy that sampled. Where both policies are the same, the gradient is
    that of `policy_gradient`.
    """
    ratio_BT, advantage_BT = _ratio(log_prob_BT, old_log_prob_BT, advantage_B, mask_BT)
    kept_BT = ratio_BT.clamp(1 - clip, 1 + clip)
    gain_BT = torch.minimum(ratio_BT * advantage_BT, kept_BT * advantage_BT)
    return -gain_BT.masked_fill(~mask_BT, 0.0).sum()


def num_clipped(
    log_prob_BT: Tensor,
    old_log_prob_BT: Tensor,
    advantage_B: Tensor,
    mask_BT: Tensor,
    clip: float,
) -> int:
    """How many tokens PPO gives no gradient, because they have gone far enough already."""
    ratio_BT, advantage_BT = _ratio(log_prob_BT, old_log_prob_BT, advantage_B, mask_BT)
    up_BT = (advantage_BT > 0) & (ratio_BT > 1 + clip)
    down_BT = (advantage_BT < 0) & (ratio_BT < 1 - clip)
    return int(((up_BT | down_BT) & mask_BT).sum())


def entropy_bonus(entropy_B: Tensor, weight: float) -> Tensor:
    """−weight · Σ entropy of the position: keeps a policy from settling on one place too early.

    Left out: the entropy of the sentence, whose bonus makes a language model ramble.
    """
    return -weight * entropy_B.sum()


def k3(log_prob_BT: Tensor, ref_log_prob_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """[B, T]: the KL of each token, never negative (http://joschu.net/blog/kl-approx.html).

    For logs. What is paid for leaving the reference comes in from outside, with its own estimator.
    """
    log_ratio_BT = (ref_log_prob_BT - log_prob_BT).masked_fill(~mask_BT, 0.0)
    return (torch.expm1(log_ratio_BT) - log_ratio_BT).clamp(min=0)


def _ratio(
    log_prob_BT: Tensor, old_log_prob_BT: Tensor, advantage_B: Tensor, mask_BT: Tensor
) -> tuple[Tensor, Tensor]:
    _check(log_prob_BT, advantage_B, mask_BT)
    _check(old_log_prob_BT, advantage_B, mask_BT)
    log_ratio_BT = (log_prob_BT - old_log_prob_BT.detach()).masked_fill(~mask_BT, 0.0)
    return log_ratio_BT.exp(), advantage_B.detach()[:, None].expand_as(mask_BT)


def _check(log_prob_BT: Tensor, advantage_B: Tensor, mask_BT: Tensor) -> None:
    if log_prob_BT.shape != mask_BT.shape or advantage_B.shape != mask_BT.shape[:1]:
        shapes = [tuple(tensor.shape) for tensor in (log_prob_BT, advantage_B, mask_BT)]
        raise ValueError(f"log-probabilities, advantages and mask do not fit: {shapes}")
