"""What both loops ask of a reward and of a KL penalty, and what they give back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor


class Scorer(Protocol):
    """Says how good rewrites are: a `RewardSum`. `update` lets it adapt its scales to them."""

    def score(self, *, completions: Sequence[Any], update: bool = ..., **columns: Any) -> Any: ...


class Penalty(Protocol):
    """The KL penalty of every token, [B, T]: a `KLPenalty`.

    `update` is told the mean KL of so many new samples, for a weight that adapts.
    """

    def __call__(self, log_prob_BT: Tensor, ref_log_prob_BT: Tensor, mask_BT: Tensor) -> Tensor: ...
    def update(self, kl: float, num_responses: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of the log, and the number of steps after which the kept weights were reached."""

    rows: list[dict[str, float]]
    step: int
