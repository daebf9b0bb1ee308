"""The mathematics of PPO on responses, as pure functions (arXiv 1707.06347, 1506.02438).

A response is an episode: every token is an action, the state before it is all that was read and
written. What the response earned comes with its last token, what leaving the reference costs with
every one.

Losses are sums, to be divided once by the tokens of the whole minibatch: how it is cut into
micro-batches or shared by processes changes nothing.

Legend: B responses, T tokens of the longest. Rows are filled up on the right; masked places may
hold anything and reach neither value nor gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor


def with_end_penalty(score_B: Tensor, finished_B: Tensor, penalty: float) -> Tensor:
    """[B]: the scores, less a penalty where a response was cut off before it ended."""
    return score_B - penalty * (~finished_B).to(score_B.dtype)


def token_rewards(score_B: Tensor, penalty_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """[B, T]: minus the penalty of every token, and the score at the last one of each row."""
    _same_shape(penalty_BT, mask_BT)
    reward_BT = -penalty_BT.masked_fill(~mask_BT, 0.0)
    last_B = mask_BT.sum(dim=-1) - 1
    rows_B = (last_B >= 0).nonzero()[:, 0]  # a row may have no token at all
    reward_BT[rows_B, last_B[rows_B]] += score_B[rows_B]
    return reward_BT


def gae(
    reward_BT: Tensor, value_BT: Tensor, mask_BT: Tensor, gamma: float = 1.0, lam: float = 0.95
) -> tuple[Tensor, Tensor]:
    """Advantages and returns, [B, T] each: generalised advantage estimation (arXiv 1506.02438).

    δ_t = r_t + γ·V_{t+1} − V_t;  A_t = δ_t + γλ·A_{t+1};  return_t = A_t + V_t. After the last
    token nothing is to be had: V and A are 0 there, also where a response was cut off.
    """
    _same_shape(reward_BT, mask_BT)
    _same_shape(value_BT, mask_BT)
    value_BT = value_BT.masked_fill(~mask_BT, 0.0)
    reward_BT = reward_BT.masked_fill(~mask_BT, 0.0)
    advantage_BT = torch.zeros_like(reward_BT)
    later_B = reward_BT.new_zeros(len(reward_BT))
    next_value_B = reward_BT.new_zeros(len(reward_BT))
    for t in reversed(range(reward_BT.shape[1])):
        delta_B = reward_BT[:, t] + gamma * next_value_B - value_BT[:, t]
        later_B = (delta_B + gamma * lam * later_B).masked_fill(~mask_BT[:, t], 0.0)
        next_value_B = value_BT[:, t]
        advantage_BT[:, t] = later_B
    return advantage_BT, advantage_BT + value_BT


def whitened(x_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """[B, T]: mean 0 and variance 1 over the tokens that are no filling; those stay 0.

    It makes the size of a step independent of the scale of the rewards. Where all are the same,
    nothing is left: 0 everywhere.
    """
    _same_shape(x_BT, mask_BT)
    chosen_N = x_BT[mask_BT]
    if not len(chosen_N):
        return torch.zeros_like(x_BT)
    centred_BT = x_BT - chosen_N.mean()
    deviation = chosen_N.std(unbiased=False)
    return (centred_BT / (deviation + 1e-8)).masked_fill(~mask_BT, 0.0)


def policy_loss(
    log_prob_BT: Tensor, old_log_prob_BT: Tensor, advantage_BT: Tensor, mask_BT: Tensor, clip: float
) -> Tensor:
    """−Σ min(ρ·A, clip(ρ, 1 ± clip)·A) with ρ = π / π_old per token, a scalar."""
    for tensor in (log_prob_BT, old_log_prob_BT, advantage_BT):
        _same_shape(tensor, mask_BT)
    ratio_BT = ratios(log_prob_BT, old_log_prob_BT, mask_BT)
    advantage_BT = advantage_BT.detach()
    kept_BT = ratio_BT.clamp(1 - clip, 1 + clip)
    gain_BT = torch.minimum(ratio_BT * advantage_BT, kept_BT * advantage_BT)
    return -gain_BT.masked_fill(~mask_BT, 0.0).sum()


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


def ratios(log_prob_BT: Tensor, old_log_prob_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """[B, T]: π / π_old per token, 1 where masked."""
    return (log_prob_BT - old_log_prob_BT.detach()).masked_fill(~mask_BT, 0.0).exp()


def num_clipped(
    log_prob_BT: Tensor, old_log_prob_BT: Tensor, advantage_BT: Tensor, mask_BT: Tensor, clip: float
) -> Tensor:
    """How many tokens get no gradient, because they have gone far enough already; a scalar."""
    ratio_BT = ratios(log_prob_BT, old_log_prob_BT, mask_BT)
    up_BT = (advantage_BT > 0) & (ratio_BT > 1 + clip)
    down_BT = (advantage_BT < 0) & (ratio_BT < 1 - clip)
    return ((up_BT | down_BT) & mask_BT).sum()


def explained_variance(value_BT: Tensor, return_BT: Tensor, mask_BT: Tensor) -> float | None:
    """1 − Var(return − value) / Var(return): 1 all foreseen, 0 no better than a constant.

    None where the returns do not vary.
    """
    returns_N, values_N = return_BT[mask_BT], value_BT[mask_BT]
    variance = returns_N.var(unbiased=False) if len(returns_N) else returns_N.sum()
    if not variance > 0:
        return None
    return float(1 - (returns_N - values_N).var(unbiased=False) / variance)


def _same_shape(tensor: Tensor, mask_BT: Tensor) -> None:
    if tensor.shape != mask_BT.shape:
        raise ValueError(f"shapes differ: {tuple(tensor.shape)} and mask {tuple(mask_BT.shape)}")
