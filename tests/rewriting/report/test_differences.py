"""Differences as text, and which of them are called better or worse."""

from typing import Any

from rewriting.report.differences import Cell, cell, compared, difference_table, p_text, verdicts


def found(p: float | None, **value: Any) -> dict[str, Any]:
    return value | {"p": p, "p_holm": p, "n": 9}


OTHERS = {
    "mine": {
        "empathy_change": found(0.0004, difference=1.234, interval=[0.5, 2.0]),
        "perplexity": found(0.0312, ratio=1.25, interval=[1.1, 1.4]),
        "coherence": found(0.5, difference=-0.1, interval=None),
        "specificity_new": found(None, difference=None, interval=None),
        "rewards/mine": found(0.01, difference=0.5, interval=[0.1, 0.9]),
    }
}


def test_cells_have_signs_factors_and_p() -> None:
    table = difference_table(OTHERS)
    assert "specificity_new" not in table
    assert table["empathy_change"] == [Cell("+1.23", "0.50 … 2.00", "p < 0.001")]
    assert table["perplexity"] == [Cell("× 1.25", "1.10 … 1.40", "p = 0.031")]
    assert table["coherence"] == [Cell("−0.10", "", "p = 0.50")]
    assert cell("coherence", found(None, difference=None, interval=None)).value == "–"
    assert cell("coherence", found(0.9, difference=-0.001, interval=None)).value == "0.00"
    assert p_text(0.1) == "p = 0.10"


def test_better_and_worse_follow_the_measure() -> None:
    calls = {name: one for name, (one,) in verdicts(OTHERS).items()}
    assert calls["empathy_change"] == "better"
    assert calls["perplexity"] == "worse"
    assert calls["coherence"] == calls["specificity_new"] == calls["rewards/mine"] == ""


def test_one_system_is_compared_with_nothing() -> None:
    assert compared({"mine": {"n": 3}}) == ("", {})
    assert difference_table({}) == {}
    figures = {"a": {}, "b": {"against": {"system": "a", "measures": {"x": 1}}}}
    assert compared(figures) == ("a", {"b": {"x": 1}})
