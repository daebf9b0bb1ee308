"""The objective: how much better a sample did than was to be expected, and losses made of that.

**Advantages.** Subtracting from a reward what does not depend on the sample's own actions leaves
the policy gradient's mean as it is and takes away most of its noise (Williams 1992). What differs
is where the expectation comes from: the other samples of the same exchange, or the steps before. A
reward may be NaN where no term applies to a sample: it then teaches nothing, advantage 0, and
counts in no mean.

PPO goes further: every token is an action, what the response earned comes with its last token, what
leaving the reference costs with every one, and a value head says what was to be expected there.

**Losses** are to be minimised: they carry the minus. All are sums. Divided by the number of
episodes, the mean gradient of `policy_gradient` is minus the gradient of the expected reward,
exactly; dividing by tokens instead would favour long sentences that are bad and short ones that are
good (arXiv 2503.20783). An advantage is one number for all tokens of a row, [B], or one for each,
[B, T]; no gradient flows into it.

Legend: N exchanges, G samples of each; B rows (responses, or actions with their position as the
first token), T tokens of the longest. Rows are filled up on the right; masked places may hold
anything and reach neither value nor gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# ---- advantages of samples


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


def credit_of_positions(rewards_NG: Tensor, sharing: int) -> tuple[Tensor, Tensor]:
    """Two advantages, [N, G] each: of the first position, and of all that was said after it.

    Every `sharing` samples in a row have the same first position. What they earn in the mean,
    against the mean of the other positions, is the position's; what each earns against the others
    at its place is its own. Both baselines leave out the actions that they are for, so the mean
    gradient is the policy's; a good sentence at a bad place no longer speaks for the place.
    """
    rewards_NPS = rewards_NG.unflatten(-1, (-1, sharing))
    own_NG = leave_one_out(rewards_NPS).flatten(-2)
    place_NP = leave_one_out(rewards_NPS.nanmean(dim=-1))
    place_NG = place_NP.repeat_interleave(sharing, dim=-1)
    return place_NG.masked_fill(rewards_NG.isnan(), 0.0), own_NG


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


# ---- advantages per token, with a value head


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


def explained_variance(value_BT: Tensor, return_BT: Tensor, mask_BT: Tensor) -> float | None:
    """1 − Var(return − value) / Var(return): 1 all foreseen, 0 no better than a constant.

    None where the returns do not vary.
    """
    returns_N, values_N = return_BT[mask_BT], value_BT[mask_BT]
    variance = returns_N.var(unbiased=False) if len(returns_N) else returns_N.sum()
    if not variance > 0:
        return None
    return float(1 - (returns_N - values_N).var(unbiased=False) / variance)


# ---- losses


def policy_gradient(log_prob_BT: Tensor, advantage: Tensor, mask_BT: Tensor) -> Tensor:
    """−Σ advantage · log π(token), a scalar: REINFORCE (Williams 1992)."""
    advantage_BT = _per_token(advantage, mask_BT, log_prob_BT)
    return -(advantage_BT * log_prob_BT.masked_fill(~mask_BT, 0.0)).sum()


def clipped(
    log_prob_BT: Tensor, old_log_prob_BT: Tensor, advantage: Tensor, mask_BT: Tensor, clip: float
) -> tuple[Tensor, Tensor]:
    """−Σ min(ρ·A, clip(ρ, 1 ± clip)·A) with ρ = π / π_old per token: PPO (arXiv 1707.06347).

    And how many tokens get no gradient, because they have gone far enough already.
    old_log_prob_BT: of the policy that sampled. Where both policies are the same, the gradient is
    that of `policy_gradient`.
    """
    advantage_BT = _per_token(advantage, mask_BT, log_prob_BT, old_log_prob_BT)
    ratio_BT = (log_prob_BT - old_log_prob_BT.detach()).masked_fill(~mask_BT, 0.0).exp()
    kept_BT = ratio_BT.clamp(1 - clip, 1 + clip)
    gain_BT = torch.minimum(ratio_BT * advantage_BT, kept_BT * advantage_BT)
    up_BT = (advantage_BT > 0) & (ratio_BT > 1 + clip)
    down_BT = (advantage_BT < 0) & (ratio_BT < 1 - clip)
    return -gain_BT.masked_fill(~mask_BT, 0.0).sum(), ((up_BT | down_BT) & mask_BT).sum()


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
