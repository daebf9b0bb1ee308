"""The losses of reinforcement learning, as pure functions. To be minimised: they carry the minus.

All are sums. Divided by the number of episodes, the first one's mean gradient is minus the
gradient of the expected reward, exactly; dividing by tokens instead would favour long sentences
that are bad and short ones that are good (arXiv 2503.20783).

An advantage is one number for all tokens of a row, [B], or one for each, [B, T]; no gradient flows
into it. Masked places may hold anything and reach neither value nor gradient.

Legend: B rows (actions with their position as the first token, or responses), T tokens of a row.
"""

from __future__ import annotations

import torch
from torch import Tensor


def policy_gradient(log_prob_BT: Tensor, advantage: Tensor, mask_BT: Tensor) -> Tensor:
    """−Σ advantage · log π(token), a scalar: REINFORCE (Williams 1992)."""
    advantage_BT = _per_token(advantage, mask_BT, log_prob_BT)
    return -(advantage_BT * log_prob_BT.masked_fill(~mask_BT, 0.0)).sum()


def clipped(
    log_prob_BT: Tensor, old_log_prob_BT: Tensor, advantage: Tensor, mask_BT: Tensor, clip: float
) -> Tensor:
    """−Σ min(ρ·A, clip(ρ, 1 ± clip)·A) with ρ = π / π_old per token: PPO (arXiv 1707.06347).

    old_log_prob_BT: of the policy that sampled. Where both policies are the same, the gradient is
    that of `policy_gradient`.
    """
    advantage_BT = _per_token(advantage, mask_BT, log_prob_BT, old_log_prob_BT)
    ratio_BT = ratios(log_prob_BT, old_log_prob_BT, mask_BT)
    kept_BT = ratio_BT.clamp(1 - clip, 1 + clip)
    gain_BT = torch.minimum(ratio_BT * advantage_BT, kept_BT * advantage_BT)
    return -gain_BT.masked_fill(~mask_BT, 0.0).sum()


def num_clipped(
    log_prob_BT: Tensor, old_log_prob_BT: Tensor, advantage: Tensor, mask_BT: Tensor, clip: float
) -> Tensor:
    """How many tokens PPO gives no gradient, because they have gone far enough already."""
    advantage_BT = _per_token(advantage, mask_BT, log_prob_BT, old_log_prob_BT)
    ratio_BT = ratios(log_prob_BT, old_log_prob_BT, mask_BT)
    up_BT = (advantage_BT > 0) & (ratio_BT > 1 + clip)
    down_BT = (advantage_BT < 0) & (ratio_BT < 1 - clip)
    return ((up_BT | down_BT) & mask_BT).sum()


def ratios(log_prob_BT: Tensor, old_log_prob_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """[B, T]: π / π_old per token, 1 where masked."""
    return (log_prob_BT - old_log_prob_BT.detach()).masked_fill(~mask_BT, 0.0).exp()


def entropy_bonus(entropy_B: Tensor, weight: float) -> Tensor:
    """−weight · Σ entropy of the position: keeps a policy from settling on one place too early.

    Left out: the entropy of the sentence, whose bonus makes a language model ramble.
    """
    return -weight * entropy_B.sum()


def value_loss(
    value_BT: Tensor, old_value_BT: Tensor, return_BT: Tensor, mask_BT: Tensor, clip: float | None
) -> Tensor:
    """½·Σ max((V − R)², (V_clipped − R)²), a scalar; V_clipped keeps within ±clip of the old value.

    clip None: the plain squared error.
    """
    for tensor in (value_BT, old_value_BT, return_BT):
        _same_shape(tensor, mask_BT)
    value_BT, old_value_BT, return_BT = (
        tensor.masked_fill(~mask_BT, 0.0)
        for tensor in (value_BT, old_value_BT.detach(), return_BT.detach())
    )
    error_BT = (value_BT - return_BT).square()
    if clip is not None:
        kept_BT = old_value_BT + (value_BT - old_value_BT).clamp(-clip, clip)
        error_BT = torch.maximum(error_BT, (kept_BT - return_BT).square())
    return 0.5 * error_BT.sum()


def _per_token(advantage: Tensor, mask_BT: Tensor, *others: Tensor) -> Tensor:
    """[B, T], without a gradient; all shapes are checked."""
    for tensor in others:
        _same_shape(tensor, mask_BT)
    if advantage.shape == mask_BT.shape[:1]:
        advantage = advantage[:, None].expand_as(mask_BT)
    _same_shape(advantage, mask_BT)
    return advantage.detach()


def _same_shape(tensor: Tensor, mask_BT: Tensor) -> None:
    if tensor.shape != mask_BT.shape:
        raise ValueError(f"shapes differ: {tuple(tensor.shape)} and mask {tuple(mask_BT.shape)}")
