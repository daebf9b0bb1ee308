"""A measure: its figures and its text."""

from dataclasses import dataclass

import pytest

from rewriting.measures.measure import Measure, figures_of, measures_table, with_interval


@dataclass
class Numbers:
    rows: list[float]
    groups: list[str]
    seed: int = 0


PLAIN: Measure[float] = Measure("plain", "as it is", value=lambda row: row or None, signed=True)
RATIO: Measure[float] = Measure("ratio", "factors", "lower", 1, value=lambda r: r, ratio=True)
COUNT: Measure[float] = Measure(
    "n", "rows", "", 0, of_all=lambda table: (len(table.rows), None), docs="how many"
)


def test_a_figure_is_the_mean_of_what_is_known() -> None:
    table = Numbers([1.0, 3.0, 0.0], list("aab"))
    assert PLAIN.column(table.rows) == [1.0, 3.0, None]
    assert PLAIN.figure(table) == (2.0, None)  # one group has a value
    assert COUNT.figure(table) == (3, None)
    with pytest.raises(TypeError, match="n is no measure of single rows"):
        COUNT.column(table.rows)


def test_ratios_are_averaged_as_logarithms() -> None:
    table = Numbers([10.0, 1000.0], list("ab"))
    value, interval = RATIO.figure(table)
    assert value == pytest.approx(100)
    assert interval == pytest.approx((10, 1000))
    assert RATIO.back(0.0) == 1
    assert RATIO.back(None) is None


def test_a_table_of_measures() -> None:
    table = Numbers([1.0, 3.0], list("ab"))
    figures, intervals = figures_of({"plain": PLAIN, "n": COUNT}, table)
    assert figures == {"plain": 2.0, "n": 2}
    assert intervals == {"plain": (1.0, 3.0), "n": None}


def test_figures_as_tables_have_them() -> None:
    assert PLAIN.shown(1.5) == "+1.50"
    assert PLAIN.shown(-0.001) == "0.00"
    assert PLAIN.shown(None) == "–"
    assert RATIO.shown(12.345) == "12.3"
    assert PLAIN.shown_interval((-0.5, 1.0)) == "−0.50 … 1.00"
    assert PLAIN.shown_interval((0.0, 0.0)) == PLAIN.shown_interval(None) == ""
    assert with_interval("1", "0.50 … 2.00") == "1 (0.50…2.00)"
    assert with_interval("1", "") == "1"


def test_differences_have_signs() -> None:
    assert [RATIO.shown_difference(one) for one in (0.5, 0.01, -0.01, -2.0)] == [
        "+0.5",
        "0.0",
        "0.0",
        "−2.0",
    ]


def test_the_docs_say_the_meaning_or_more() -> None:
    table = measures_table({"plain": PLAIN, "n": COUNT})
    assert table == ["| `plain` | as it is |", "| `n` | how many |"]
