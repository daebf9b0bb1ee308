"""The columns of exchanges that rewards are called with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rewriting.exchange import Exchange

GIVEN_COLUMNS: Final = frozenset({
    "prompts", "completions", "completion_ids", "sentence",
    "trainer_state", "log_extra", "log_metric", "update",
})  # fmt: skip
"""What a reward is called with besides the columns of the data, which therefore cannot be those."""


def column_names(exchanges: Sequence[Exchange]) -> list[str]:
    """The columns of the data that rewards are given: every one that any exchange has."""
    names = {name: None for exchange in exchanges for name in exchange.row()}  # in their order
    return [name for name in names if name not in GIVEN_COLUMNS]


def data_columns(exchanges: Sequence[Exchange], names: Sequence[str]) -> dict[str, list[Any]]:
    """Those columns; None where an exchange does not have one."""
    rows = [exchange.row() for exchange in exchanges]
    return {name: [row.get(name) for row in rows] for name in names}
