"""A scored file as columns of numbers, read row by row: texts are not kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rewriting.data.formats import RowError, parse_level
from rewriting.data.rows import Row, read_rows, stop_at_bad_row
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from rewriting.runtime.files.json_files import parse_json, shown
from rewriting.statistics.regression import Codes, Floats

DAY = 86_400.0
SECONDS = (1e8, 1e11)  # what a plain number of seconds since 1970 lies between: 1973 to 5138
JSON_ENDINGS = (".json", ".jsonl")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names of the columns to look at; an empty name, or none, means not to."""

    user: str = ""
    time: str = ""
    groups: Sequence[str] = ()
    outcomes: Sequence[str] = ()
    appraisals: str = ""

    @property
    def names(self) -> list[str]:
        named = (self.user, self.time, self.appraisals, *self.groups, *self.outcomes)
        return [name for name in named if name]


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
        if _is_missing(value):
            self.codes.append(-1)
        else:
            self.codes.append(self.numbers.setdefault(str(value), len(self.numbers)))

    def column(self) -> Column:
        return Column(np.array(self.codes, dtype=np.int64), list(self.numbers))


def read_columns(path: Path, wanted: Wanted) -> Columns:
    """Read the file once. A column that is named and not there is an error that lists them all.

    A row of JSON may lack a column that others have: its value is missing then.
    """
    levels: list[tuple[int, ...]] = []
    users, labels = _Categories(), _Categories()
    days: list[float] = []
    groups = {name: _Categories() for name in wanted.groups}
    outcomes: dict[str, list[float]] = {name: [] for name in wanted.outcomes}
    met: list[float] = []
    rows: list[int] = []
    seen: dict[str, None] = {}
    for row in read_rows(path, stop_at_bad_row):
        seen |= dict.fromkeys(row.cells)
        if not levels:
            _check_scored(row)
            if path.suffix.lower() not in JSON_ENDINGS:
                _check_columns(path, wanted, seen)
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
    if not levels:
        raise UserError(f"{path} holds no row.")
    _check_columns(path, wanted, seen)
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


def _check_scored(row: Row) -> None:
    missing = [name for name in MECHANISMS if name not in row.cells]
    if missing:
        raise UserError(
            f"{row.file} has no column {missing[0]}: score it first, with `rewriting score`."
        )


def _check_columns(path: Path, wanted: Wanted, seen: Mapping[str, None]) -> None:
    for name in wanted.names:
        if name not in seen:
            raise UserError(f"{path} has no column {name!r}. It has: {', '.join(seen)}.")


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or value != value  # what is not itself is NaN


def _level(row: Row, name: str) -> int:
    try:
        return parse_level(row.cells.get(name), name)
    except RowError as error:
        raise UserError(f"{row.file}, line {row.line}: {error}.") from error


def _number(row: Row, name: str) -> float:
    value = row.cells.get(name)
    if _is_missing(value):
        return np.nan
    if isinstance(value, str) and value.lower() in ("true", "false", "yes", "no"):
        return float(value.lower() in ("true", "yes"))
    number = _plain_number(value)
    if number is None or np.isinf(number):
        raise UserError(
            f"{row.file}, line {row.line}: outcome {name} is {shown(value)}; "
            "a number, or true or false."
        )
    return number


def _day(row: Row, name: str) -> float:
    """Days since 1970 from ISO text, seconds, milliseconds, or what Parquet gives.

    A number that would be before 1973 is no such thing: a year, or a date such as 20240531.
    """
    value = row.cells.get(name)
    if _is_missing(value):
        return np.nan
    number = _plain_number(value)
    if number is not None and np.isnan(number):
        return np.nan
    for unit in (1.0, 1000.0):
        if number is not None and SECONDS[0] <= number / unit < SECONDS[1]:
            return number / unit / DAY
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / DAY
    except (ValueError, OverflowError) as error:
        raise UserError(
            f"{row.file}, line {row.line}: time {name} is {shown(value)}; "
            "write 2024-05-31, 2024-05-31T08:00:00 or seconds since 1970."
        ) from error


def _plain_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _appraisals(row: Row, name: str) -> list[tuple[str, float]]:
    """Label → how far the reply meets it, of one row."""
    value = row.cells.get(name) if name else None
    if not value:
        return []
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            raise _bad_appraisals(row, name, value) from error
    if not isinstance(value, Mapping):
        raise _bad_appraisals(row, name, value)
    met = {str(label): _plain_number(one) for label, one in value.items() if one is not None}
    if not all(share is not None and 0 <= share <= 1 for share in met.values()):
        raise _bad_appraisals(row, name, value)
    return [(label, share) for label, share in met.items() if share is not None]


def _bad_appraisals(row: Row, name: str, value: Any) -> UserError:
    return UserError(
        f"{row.file}, line {row.line}: {name} is {shown(value)}; "
        'a mapping such as {"Pleasantness": true, "Advice": 0.5}, 0 to 1 each.'
    )
