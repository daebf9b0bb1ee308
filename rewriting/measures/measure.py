"""A measure, and the figures of a system by a table of measures.

A new measure is one entry of the table in rewrites.py or responses.py. The terminal's table, the
JSON, the paired tests, the report and the docs follow from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from rewriting.statistics.intervals import Interval, bootstrap_interval
from rewriting.statistics.means import mean

Value = float | None
Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)
Figure = tuple[Value, Interval | None]


class Rows(Protocol[Row_co]):
    """All rows of a system. groups: which of them belong together, such as those of a seeker."""

    @property
    def rows(self) -> Sequence[Row_co]: ...
    @property
    def groups(self) -> Sequence[Hashable]: ...
    @property
    def seed(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Measure(Generic[Row]):
    """What a figure is called, what it means, and how it comes about."""

    title: str
    meaning: str
    """One line, as the report has it below its table."""
    better: str = "higher"
    """Which way is better: `higher`, `lower`, or nothing for neither."""
    digits: int = 2
    value: Callable[[Row], Value] | None = None
    """Of one row; the figure is the mean over the rows that have one."""
    of_all: Callable[[Any], Figure] | None = None
    """Of all rows at once (`Rows`), with its interval, where no mean over rows would do."""
    ratio: bool = False
    """Averaged as logarithms, since one odd row would outweigh the rest; a difference of two
    systems is then a factor."""
    signed: bool = False
    """A plus stands before what is above 0."""
    tested: bool = False
    """Systems are compared by it row by row. The fewer such measures, the less Holm takes."""
    plotted: bool = False
    """The report has a plot of it."""
    term: Mapping[str, Any] | None = None
    """Options of the reward term of this name, which then gives the value of every row."""
    docs: str = ""
    """The explanation in the docs, where it says more than the meaning."""

    @property
    def explanation(self) -> str:
        return self.docs or self.meaning

    def column(self, rows: Sequence[Row]) -> list[Value]:
        """Its value for every row, as they are averaged and compared: logarithms of ratios."""
        if self.value is None:
            raise TypeError(f"{self.title} is no measure of single rows.")
        values = [self.value(row) for row in rows]
        return [None if v is None else math.log(v) for v in values] if self.ratio else values

    def back(self, value: Value) -> Value:
        """Turn a value of `column`, where ratios are logarithms, into one that tables show."""
        return math.exp(value) if self.ratio and value is not None else value

    def figure(self, table: Rows[Row]) -> Figure:
        """The figure of a system and its 95 % interval."""
        if self.of_all is not None:
            return self.of_all(table)
        return self.average(self.column(table.rows), table.groups, table.seed)

    def average(self, column: Sequence[Value], groups: Sequence[Hashable], seed: int = 0) -> Figure:
        """The mean of a column and its interval, drawing whole groups."""
        bounds = bootstrap_interval(column, groups, seed=seed)
        value = self.back(mean(column))
        if bounds is None or not self.ratio:
            return value, bounds
        return value, (math.exp(bounds[0]), math.exp(bounds[1]))

    def shown(self, value: Value) -> str:
        """A figure as tables show it: rounded, with its sign where that matters."""
        if value is None:
            return "–"
        return ("+" if self.signed and value > 0 else "") + self._rounded(value)

    def shown_interval(self, interval: Sequence[float] | None) -> str:
        """Its bounds; nothing where they are one, as for what a system leaves alone."""
        if interval is None or interval[0] == interval[1]:
            return ""
        return " … ".join(map(self._rounded, interval))

    def shown_difference(self, value: float) -> str:
        """By how much two systems differ; a plus stands before what is above 0."""
        text = self._rounded(value)
        return text if value < 0 or not text.strip("0.") else f"+{text}"

    def _rounded(self, value: float) -> str:
        return f"{round(value, self.digits) + 0.0:.{self.digits}f}".replace("-", "−")


def figures_of(
    measures: Mapping[str, Measure[Row]], table: Rows[Row]
) -> tuple[dict[str, Value], dict[str, Interval | None]]:
    """The figures of one system by name, and their 95 % intervals where they have one."""
    found = {name: measure.figure(table) for name, measure in measures.items()}
    return (
        {name: value for name, (value, _) in found.items()},
        {name: interval for name, (_, interval) in found.items()},
    )


def with_interval(value: str, interval: str) -> str:
    """A value and its interval, as a cell of a table in the terminal."""
    return f"{value} ({interval.replace(' ', '')})" if interval else value


def measures_table(measures: Mapping[str, Measure[Any]]) -> list[str]:
    """The lines of the docs' table: a name and an explanation each."""
    return [f"| `{name}` | {measure.explanation} |" for name, measure in measures.items()]
