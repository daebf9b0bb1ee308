"""A scored file as columns of numbers, read row by row: texts are not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rewriting.data.rows import Row, raise_bad_row, read_rows
from rewriting.errors import UserError
from rewriting.exchange import LEVELS, MECHANISMS
from rewriting.insights.regression import Codes, Floats

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names of the columns to look at; an empty name, or none, means not to."""

    user: str = ""
    time: str = ""
    groups: Sequence[str] = ()
    outcomes: Sequence[str] = ()
    appraisals: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of categories: the number of each row's category, −1 where it is missing."""

    codes_N: Codes
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Columns:
    """What was read. N rows; M appraisals of all rows together.

    day_N: time in days since 1970, NaN where missing. appraisal_M holds labels, met_M whether the
    reply meets them (0 to 1), row_M which row they belong to.
    """

    levels_NK: NDArrayInt
    users: Column | None
    day_N: Floats | None
    groups: Mapping[str, Column]
    outcomes: Mapping[str, Floats]
    appraisals: Column | None
    met_M: Floats
    row_M: Codes

    @property
    def cluster_N(self) -> Codes:
        """Who wrote the reply; every row is a cluster of its own where that is not known."""
        own_N = np.arange(len(self.levels_NK), dtype=np.int64)
        if self.users is None:
            return own_N
        missing_N = self.users.codes_N < 0
        return np.where(missing_N, len(self.users.names) + own_N, self.users.codes_N)


NDArrayInt = np.ndarray[Any, np.dtype[np.int64]]


class _Categories:
    """Numbers for names, in the order in which they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.codes: list[int] = []

    def add(self, value: Any) -> None:
        if value is None or value == "":
            self.codes.append(-1)
        else:
            self.codes.append(self.numbers.setdefault(str(value), len(self.numbers)))

    def column(self) -> Column:
        return Column(np.array(self.codes, dtype=np.int64), list(self.numbers))


def read_columns(path: Path, wanted: Wanted) -> Columns:
    """Read the file once. A column that is named and not there is an error that lists them all."""
    levels: list[tuple[int, ...]] = []
    users, labels = _Categories(), _Categories()
    days: list[float] = []
    groups = {name: _Categories() for name in wanted.groups}
    outcomes: dict[str, list[float]] = {name: [] for name in wanted.outcomes}
    met: list[float] = []
    rows: list[int] = []
    for row in read_rows(path, raise_bad_row):
        if not levels:
            _check_columns(row, wanted)
        levels.append(tuple(_level(row, name) for name in MECHANISMS))
        cells = row.cells
        users.add(cells.get(wanted.user))
        days.append(_day(row, wanted.time) if wanted.time else np.nan)
        for name, categories in groups.items():
            categories.add(cells.get(name))
        for name, values in outcomes.items():
            values.append(_number(row, name))
        for label, value in _appraisals(row, wanted.appraisals):
            labels.add(label)
            met.append(value)
            rows.append(len(levels) - 1)
    return Columns(
        np.array(levels, dtype=np.int64),
        users.column() if wanted.user else None,
        np.array(days) if wanted.time else None,
        {name: categories.column() for name, categories in groups.items()},
        {name: np.array(values) for name, values in outcomes.items()},
        labels.column() if wanted.appraisals else None,
        np.array(met, dtype=np.float64),
        np.array(rows, dtype=np.int64),
    )


def _check_columns(row: Row, wanted: Wanted) -> None:
    missing = [name for name in MECHANISMS if name not in row.cells]
    if missing:
        raise UserError(
            f"{row.file} has no column {missing[0]}: score it first, with `rewriting score`."
        )
    named = [wanted.user, wanted.time, wanted.appraisals, *wanted.groups, *wanted.outcomes]
    for name in filter(None, named):
        if name not in row.cells:
            known = ", ".join(row.cells)
            raise UserError(f"{row.file} has no column {name!r}. It has: {known}.")


def _level(row: Row, name: str) -> int:
    value = row.cells.get(name)
    try:
        level = int(str(value))
    except ValueError:
        level = -1
    if level not in LEVELS:
        raise UserError(f"{row.file}, line {row.line}: {name} is {value!r}; levels are 0, 1, 2.")
    return level


def _number(row: Row, name: str) -> float:
    value = row.cells.get(name)
    if value is None or value == "":
        return np.nan
    if isinstance(value, str) and value.lower() in ("true", "false", "yes", "no"):
        return float(value.lower() in ("true", "yes"))
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{row.file}, line {row.line}: outcome {name} is {value!r}; a number, or true or false."
        ) from error


def _day(row: Row, name: str) -> float:
    """Days since 1970 from ISO text, seconds, milliseconds, or what Parquet gives."""
    value = row.cells.get(name)
    if value is None or value == "":
        return np.nan
    try:
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() / DAY
        number = _plain_number(value)
        if number is not None:
            return number / (1000 * DAY if number > 1e11 else DAY)
        moment = datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / DAY
    except (ValueError, OverflowError) as error:
        raise UserError(
            f"{row.file}, line {row.line}: time {name} is {value!r}; "
            "write 2024-05-31, 2024-05-31T08:00:00 or seconds since 1970."
        ) from error


def _plain_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _appraisals(row: Row, name: str) -> list[tuple[str, float]]:
    """Label → whether the reply meets it, of one row."""
    value = row.cells.get(name) if name else None
    if not value:
        return []
    if isinstance(value, str):
        import json

        try:
            value = json.loads(value)
        except ValueError as error:
            raise _bad_appraisals(row, name, value) from error
    if not isinstance(value, Mapping):
        raise _bad_appraisals(row, name, value)
    try:
        return [(str(label), float(met)) for label, met in value.items() if met is not None]
    except (TypeError, ValueError) as error:
        raise _bad_appraisals(row, name, value) from error


def _bad_appraisals(row: Row, name: str, value: Any) -> UserError:
    return UserError(
        f"{row.file}, line {row.line}: {name} is {value!r}; "
        'a mapping such as {"Pleasantness": true, "Advice": false}.'
    )
