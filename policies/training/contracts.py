"""What the loops ask of a reward and of a KL penalty, and what they give to a reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from torch import Tensor

from rewriting.exchange import Exchange

GIVEN_COLUMNS: Final = frozenset({
    "prompts", "completions", "completion_ids", "sentence",
    "trainer_state", "log_extra", "log_metric", "update",
})  # fmt: skip
"""What a reward is called with besides the columns of the data, which therefore cannot be those."""


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


def column_names(exchanges: Sequence[Exchange]) -> list[str]:
    """The columns of the data that rewards are given: every one that any exchange has."""
    names = {name: None for exchange in exchanges for name in exchange.row()}  # in their order
    return [name for name in names if name not in GIVEN_COLUMNS]


def data_columns(exchanges: Sequence[Exchange], names: Sequence[str]) -> dict[str, list[Any]]:
    """Those columns; None where an exchange does not have one."""
    rows = [exchange.row() for exchange in exchanges]
    return {name: [row.get(name) for row in rows] for name in names}
