"""Parts of a reward: what a term reports beside its number, through the `log_extra` it is given.

TRL's trainers hand every reward a `log_extra(column, values)`. A sum of rewards hands its terms one
as well, so that the same term says the same things wherever it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rewards.protocol import RewardError, is_finite

Values = list[float | None]


def logging_parts(
    columns: Mapping[str, Any],
    name: str,
    parts: dict[str, Values],
    own_rows: slice = slice(None),
) -> dict[str, Any]:
    """The columns with a `log_extra` that keeps a term's columns of numbers as its parts.

    The trainer's gets them all, by the same TERM/PART, since two terms may log the same column.
    own_rows: those of this process, where the term is called with more.
    """
    to_trainer = columns["log_extra"]

    def keep(column: str, values: Iterable[Any]) -> None:
        rows = list(values)
        if len(rows) != len(columns["completions"]):
            raise RewardError(
                f"reward {name!r} logged {len(rows)} values of {column!r} for "
                f"{len(columns['completions'])} completions."
            )
        if to_trainer is not None:
            to_trainer(f"{name}/{column}", rows[own_rows])
        if all(value is None or is_finite(value) for value in rows):
            parts[f"{name}/{column}"] = [None if v is None else float(v) for v in rows[own_rows]]

    return {**columns, "log_extra": keep}
