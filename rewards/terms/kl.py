"""The KL penalty for leaving the reference, and who sets its weight.

KL(π ‖ π_ref) keeps a policy near the language it started from. It is a term like the others, but
it lives where the tokens are: a training loop is handed a `KLPenalty` and subtracts what it gives.
The estimators are in rewriting/runtime/language_models/kl.py.

Legend: B rows, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from torch import Tensor

from rewriting.runtime.language_models.kl import ESTIMATORS, per_token


class Controller(Protocol):
    """Holds the coefficient β. `update` is told the mean KL of so many new responses."""

    value: float

    def update(self, kl: float, num_responses: int) -> None: ...
    def state_dict(self) -> dict[str, float]: ...
    def load_state_dict(self, state: Mapping[str, float]) -> None: ...


class FixedController:
    """The same β throughout."""

    def __init__(self, value: float = 0.1) -> None:
        self.value = value

    def update(self, kl: float, num_responses: int) -> None:
        """Nothing: β stays."""

    def state_dict(self) -> dict[str, float]:
        return {"value": self.value}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        self.value = float(state["value"])


class AdaptiveController:
    """β that steers the KL of a response towards a target (arXiv 1909.08593, section 2.2).

    error = clip(KL / target − 1, ±0.2);  β ← β · (1 + error · n / horizon) after n responses. The
    clip keeps one wild batch from throwing β about; the horizon says how many responses a full
    change takes. A batch larger than the horizon counts as one horizon, so that a step changes β
    by a fifth at the most. `horizon_of` gives a horizon that fits the length of a run: the paper's
    10,000 is for runs of millions of responses, and in a run of 3,000 moves β by 6 %.
    """

    max_error: Final = 0.2

    def __init__(self, value: float = 0.2, *, target: float = 6.0, horizon: float) -> None:
        if value <= 0 or target <= 0 or horizon <= 0:
            raise ValueError(f"all must be positive: {value=}, {target=}, {horizon=}")
        self.value = value
        self.target = target
        self.horizon = horizon

    def update(self, kl: float, num_responses: int) -> None:
        error = min(max(kl / self.target - 1, -self.max_error), self.max_error)
        self.value *= 1 + error * min(num_responses / self.horizon, 1.0)

    def state_dict(self) -> dict[str, float]:
        return {"value": self.value}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        self.value = float(state["value"])


HORIZONS_OF_A_RUN: Final = 35
"""A KL that stays a fifth off its target, or more, doubles or halves β in ln 2 / 0.2 = 3.5
horizons: in a tenth of the run."""


def horizon_of(num_responses: int) -> float:
    """The horizon for a run of so many responses, within which β can go where it has to."""
    return max(num_responses, 1) / HORIZONS_OF_A_RUN


def kl_penalty(
    weight: float, *, target: float = 0.0, horizon: float = 0.0, num_responses: int
) -> KLPenalty | None:
    """What a run of `num_responses` pays for leaving its reference; None where weight is 0.

    weight: β, or what it starts from where a `target` steers it. horizon: of the steering, in
    responses; 0: in proportion to the run.
    """
    if not weight:
        return None
    if not target:
        return KLPenalty(FixedController(weight))
    horizon = horizon or horizon_of(num_responses)
    return KLPenalty(AdaptiveController(weight, target=target, horizon=horizon))


class KLPenalty:
    """What a training loop subtracts from the rewards of its tokens: β times the estimate.

    A part of a checkpoint, by its controller's state.
    """

    __name__ = "kl"

    def __init__(self, controller: Controller, estimator: str = "k1") -> None:
        if estimator not in ESTIMATORS:
            raise ValueError(f"there is no estimator {estimator!r}; use {', '.join(ESTIMATORS)}")
        self.controller = controller
        self.estimator = estimator

    def __call__(self, log_prob_BT: Tensor, ref_log_prob_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """[B, T], the penalty of every token, 0 where masked."""
        kl_BT = per_token(log_prob_BT, ref_log_prob_BT, mask_BT, self.estimator)
        return self.controller.value * kl_BT

    def update(self, kl: float, num_responses: int) -> None:
        self.controller.update(kl, num_responses)

    def state_dict(self) -> dict[str, Any]:
        return self.controller.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.controller.load_state_dict(state)
