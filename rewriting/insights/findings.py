"""The questions that are put to a scored file, and what stands when all have been asked.

Each question is a slope (regression.py) for empathy and for each mechanism. All p-values of a file
are adjusted together (Holm), so that asking many questions does not make chance look like news.
These are associations in what people wrote. None of them says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from rewriting.exchange import MECHANISMS
from rewriting.insights.columns import DAY, Column, Columns
from rewriting.statistics.multiple import holm
from rewriting.statistics.regression import Codes, Floats, Slope, clustered_mean, slope

MONTH = 30.0
SMALLEST_GROUP = 30
MOST_GROUPS = 12
MOST_PERIODS = 24
LIMITS = {"empathy": (0.0, 6.0), "met": (0.0, 1.0), **dict.fromkeys(MECHANISMS, (0.0, 2.0))}
"""What a measure can be at all: no interval of a mean is drawn beyond it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A question about a measure, its answer, and whether that answer stands."""

    question: str
    measure: str
    unit: str
    slope: Slope
    adjusted_p: float = 1.0

    @property
    def stands(self) -> bool:
        return self.adjusted_p < 0.05


@dataclass(frozen=True, slots=True)
class Point:
    """A mean with its interval, for a plot; no interval where too few people are behind it."""

    label: str
    value: float
    low: float | None
    high: float | None
    rows: int


Series = Mapping[str, Sequence[Point]]  # measure → its points


def measures(columns: Columns) -> dict[str, Floats]:
    """Empathy (0 to 6) and its three mechanisms, a number per row."""
    levels_NK = columns.levels_NK.astype(np.float64)
    parts = {name: levels_NK[:, k] for k, name in enumerate(MECHANISMS)}
    return {"empathy": levels_NK.sum(axis=1)} | parts


def findings(columns: Columns) -> list[Finding]:
    """Every question that the columns allow, with p-values adjusted over all of them."""
    asked = [*_trends(columns), *_groups(columns), *_outcomes(columns), *_appraisals(columns)]
    adjusted = holm({place: one.slope.p for place, one in enumerate(asked)})
    return [replace(one, adjusted_p=adjusted[place]) for place, one in enumerate(asked)]


def _trends(columns: Columns) -> Iterator[Finding]:
    """Over the calendar and over a person's replies, each with the other held fixed."""
    cluster_N = columns.cluster_N
    known_N = np.ones(len(cluster_N), dtype=bool)
    month_N = doublings_N = None
    if columns.day_N is not None:
        known_N &= ~np.isnan(columns.day_N)
        month_N = columns.day_N / MONTH
    if columns.users is not None:
        known_N &= columns.users.codes_N >= 0
        doublings_N = np.log2(experience(columns))
    for name, y_N in measures(columns).items():
        for question, unit, x_N, given_N, within in (
            ("over time", "points per 30 days", month_N, doublings_N, False),
            ("with experience", "points per doubling of replies", doublings_N, month_N, True),
        ):
            if x_N is None or not known_N.any():
                continue
            given = None if given_N is None else given_N[known_N]
            rows = y_N[known_N], x_N[known_N], cluster_N[known_N]
            found = slope(*rows, given_N=given, within=within)
            if found:
                yield Finding(question, name, unit, found)


def experience(columns: Columns) -> Floats:
    """For each row, the how-manieth reply of its writer it is: 1, 2, … by time, else by place."""
    cluster_N = columns.cluster_N
    place_N = np.arange(len(cluster_N))
    day_N = columns.day_N if columns.day_N is not None else place_N.astype(np.float64)
    order = np.lexsort((place_N, np.nan_to_num(day_N, nan=np.inf), cluster_N))
    sorted_N = cluster_N[order]
    first_N = np.flatnonzero(np.r_[True, sorted_N[1:] != sorted_N[:-1]])
    starts_N = np.repeat(first_N, np.diff(np.r_[first_N, len(sorted_N)]))
    number_N = np.empty(len(cluster_N), dtype=np.float64)
    number_N[order] = np.arange(len(sorted_N)) - starts_N + 1
    return number_N


def common(column: Column) -> list[int]:
    """The categories that are large enough to speak of, the largest first."""
    counts = np.bincount(column.codes_N[column.codes_N >= 0], minlength=len(column.names))
    order = np.argsort(-counts, kind="stable")[:MOST_GROUPS]
    return [int(code) for code in order if counts[code] >= SMALLEST_GROUP]


def contrasts(column: Column) -> Iterator[tuple[str, Floats]]:
    """Each group against all others of its column, and who is in it, 1 or 0; of two groups, one
    against the other."""
    codes = common(column)
    two = len(column.names) == 2
    for code in sorted(codes)[:1] if two else codes:
        others = column.names[1 - code] if two else "others"
        member_N = (column.codes_N == code).astype(np.float64)
        yield f"{column.names[code]} against {others}", member_N


def _groups(columns: Columns) -> Iterator[Finding]:
    cluster_N, by_name = columns.cluster_N, measures(columns)
    for column_name, column in columns.groups.items():
        known_N = column.codes_N >= 0
        for words, member_N in contrasts(column):
            for name, y_N in by_name.items():
                found = slope(y_N[known_N], member_N[known_N], cluster_N[known_N])
                if found:
                    yield Finding(f"{column_name}: {words}", name, "points", found)


def _outcomes(columns: Columns) -> Iterator[Finding]:
    cluster_N = columns.cluster_N
    for outcome, value_N in columns.outcomes.items():
        known_N = ~np.isnan(value_N)
        for name, x_N in measures(columns).items():
            if not known_N.any():
                continue
            found = slope(value_N[known_N], x_N[known_N], cluster_N[known_N])
            if found:
                yield Finding(f"outcome {outcome}", name, f"{outcome} per point", found)


def _appraisals(columns: Columns) -> Iterator[Finding]:
    """Are some appraisals met more often than others, and by whom?"""
    if columns.appraisals is None or not len(columns.met_M):
        return
    labels, cluster_M = columns.appraisals, columns.cluster_N[columns.row_M]
    for words, member_M in contrasts(labels):
        found = slope(columns.met_M, member_M, cluster_M)
        if found:
            yield Finding(f"appraisal {words}", "met", "share met", found)
    for name, column in columns.groups.items():
        who = who_answers(columns, column)
        known_M = who.codes_N >= 0
        for words, member_M in contrasts(who):
            found = slope(columns.met_M[known_M], member_M[known_M], cluster_M[known_M])
            if found:
                yield Finding(f"appraisals met, {name}: {words}", "met", "share met", found)


def who_answers(columns: Columns, column: Column) -> Column:
    """The group of each appraisal: that of the reply to it."""
    return Column(column.codes_N[columns.row_M], column.names)


def series(columns: Columns) -> dict[str, Series]:
    """What is plotted: means by period, by experience, by group, of outcomes, of appraisals."""
    by_name, cluster_N = measures(columns), columns.cluster_N
    found: dict[str, Series] = {}
    if columns.day_N is not None and (~np.isnan(columns.day_N)).any():
        codes_N, labels = periods(columns.day_N)
        found["over time"] = {
            n: points(y, codes_N, labels, cluster_N, LIMITS[n]) for n, y in by_name.items()
        }
    if columns.users is not None:
        codes_N = np.floor(np.log2(experience(columns))).astype(np.int64)
        codes_N[columns.users.codes_N < 0] = -1
        labels = [f"reply {2**k}" if k == 0 else f"{2**k}–{2 ** (k + 1) - 1}" for k in range(40)]
        shown = {n: points(y, codes_N, labels, cluster_N, LIMITS[n]) for n, y in by_name.items()}
        found["with experience"] = shown
    for name, column in columns.groups.items():
        codes_N = common_codes(column)
        shown = {
            n: points(y, codes_N, column.names, cluster_N, LIMITS[n]) for n, y in by_name.items()
        }
        found[f"by {name}"] = shown
    total_N = columns.levels_NK.sum(axis=1)
    for name, value_N in columns.outcomes.items():
        known_N = ~np.isnan(value_N)
        labels = [f"empathy {level}" for level in range(7)]
        codes_N = total_N[known_N]
        found[f"outcome {name}"] = {
            name: points(value_N[known_N], codes_N, labels, cluster_N[known_N])
        }
    if columns.appraisals is not None and len(columns.met_M):
        label = columns.appraisals
        cluster_M = cluster_N[columns.row_M]
        found["appraisals met"] = {
            "met": points(columns.met_M, label.codes_N, label.names, cluster_M, LIMITS["met"])
        }
        for name, column in columns.groups.items():
            codes_M = common_codes(who_answers(columns, column))
            found[f"appraisals met by {name}"] = {
                "met": points(columns.met_M, codes_M, column.names, cluster_M, LIMITS["met"])
            }
    return found


def common_codes(column: Column) -> Codes:
    """The codes of the categories that are large enough to speak of; −1 for the others."""
    return np.where(np.isin(column.codes_N, common(column)), column.codes_N, -1)


def points(
    y_N: Floats,
    codes_N: Codes,
    labels: Sequence[str],
    cluster_N: Codes,
    limits: tuple[float, float] = (-np.inf, np.inf),
) -> list[Point]:
    """The mean of y for every category that has a row, in the order of their numbers."""
    made = []
    for code in np.unique(codes_N[codes_N >= 0]):
        rows_N = codes_N == code
        centre, low, high = clustered_mean(y_N[rows_N], cluster_N[rows_N])
        low = None if low is None else max(low, limits[0])
        high = None if high is None else min(high, limits[1])
        made.append(Point(labels[code], centre, low, high, int(rows_N.sum())))
    return made


def periods(day_N: Floats) -> tuple[Codes, list[str]]:
    """A period for every day: months, or quarters or years where those would be too many."""
    known_N = ~np.isnan(day_N)
    dates = [datetime.fromtimestamp(day * DAY, UTC) for day in np.unique(np.floor(day_N[known_N]))]
    for months in (1, 3, 12):
        names = [_period(date, months) for date in dates]
        labels = list(dict.fromkeys(names))
        if len(labels) <= MOST_PERIODS:
            break
    number = {name: place for place, name in enumerate(labels)}
    by_day = {
        float(np.floor(d.timestamp() / DAY)): number[n] for d, n in zip(dates, names, strict=True)
    }
    codes_N = np.full(len(day_N), -1, dtype=np.int64)
    days, inverse = np.unique(np.floor(day_N[known_N]), return_inverse=True)
    codes_N[known_N] = np.array([by_day[float(day)] for day in days])[inverse]
    return codes_N, labels


def _period(date: datetime, months: int) -> str:
    if months == 12:
        return str(date.year)
    if months == 3:
        return f"{date.year} Q{(date.month + 2) // 3}"
    return f"{date.year}-{date.month:02}"
