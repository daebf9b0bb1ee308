"""Estimators of KL(π ‖ π_ref) per token (http://joschu.net/blog/kl-approx.html), pure functions.

With tokens sampled from π, k1 and k3 have the KL as their mean; k2 is biased and has the same
gradient near the reference. k1 goes below zero on single tokens, k3 never does. All assume that
`log_prob` is of the distribution that was sampled from: after top-k or temperature, the raw
log-probabilities make them lie.

Legend: B rows, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import torch
from torch import Tensor


def k1(log_prob: Tensor, ref_log_prob: Tensor) -> Tensor:
    """log π − log π_ref, any shape. Unbiased, high variance, may be negative."""
    _same_shape(log_prob, ref_log_prob)
    return log_prob - ref_log_prob


def k2(log_prob: Tensor, ref_log_prob: Tensor) -> Tensor:
    """(log π − log π_ref)² / 2, any shape. Biased, low variance, never negative."""
    _same_shape(log_prob, ref_log_prob)
    return (log_prob - ref_log_prob).square() / 2


def k3(log_prob: Tensor, ref_log_prob: Tensor) -> Tensor:
    """r − 1 − log r with r = π_ref / π, any shape. Unbiased, low variance, never negative."""
    _same_shape(log_prob, ref_log_prob)
    log_ratio = ref_log_prob - log_prob
    # expm1 keeps the digits where the two policies nearly agree; the clamp is for rounding alone.
    return (torch.expm1(log_ratio) - log_ratio).clamp(min=0)


Estimator = Callable[[Tensor, Tensor], Tensor]
ESTIMATORS: Final[Mapping[str, Estimator]] = {"k1": k1, "k2": k2, "k3": k3}


def _same_shape(log_prob: Tensor, ref_log_prob: Tensor) -> None:
    if log_prob.shape != ref_log_prob.shape:
        raise ValueError(f"shapes differ: {tuple(log_prob.shape)}, {tuple(ref_log_prob.shape)}")


def per_token(
    log_prob_BT: Tensor, ref_log_prob_BT: Tensor, mask_BT: Tensor, estimator: str = "k1"
) -> Tensor:
    """[B, T]: the estimate of every generated token; exactly 0 where the mask is 0.

    Masked places may hold anything, infinities included: they reach neither value nor gradient.
    """
    mask_BT = mask_BT.bool()
    log_prob_BT = log_prob_BT.masked_fill(~mask_BT, 0.0)
    ref_log_prob_BT = ref_log_prob_BT.masked_fill(~mask_BT, 0.0)
    return ESTIMATORS[estimator](log_prob_BT, ref_log_prob_BT).masked_fill(~mask_BT, 0.0)
