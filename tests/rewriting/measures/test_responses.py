"""Emp-F1, BLEU and ROUGE-L on numbers worked out by hand."""

import pytest

from rewriting.exchange import MECHANISMS, Exchange
from rewriting.measures.measure import figures_of
from rewriting.measures.responses import (
    RESPONSE_MEASURES,
    Response,
    Responses,
    bleu,
    emp_f1,
    emp_f1_intervals,
    rouge_l,
)


def of_all(levels: list[int]) -> dict[str, list[int]]:
    return dict.fromkeys(MECHANISMS, levels)


def test_emp_f1_is_the_mean_of_its_parts() -> None:
    human = of_all([0, 0, 2])
    generated = {**human, MECHANISMS[0]: [0, 0, 0], MECHANISMS[1]: [2, 2, 0]}
    found = emp_f1(human, generated)
    # All 0: F1 of level 0 is 2·2/(2+3), with weight 2/3.
    assert found[MECHANISMS[0]] == pytest.approx(100 * 0.8 * 2 / 3)
    assert found[MECHANISMS[1]] == 0
    assert found[MECHANISMS[2]] == 100
    assert found["emp_f1"] == pytest.approx((100 * 0.8 * 2 / 3 + 0 + 100) / 3)


def test_intervals_draw_whole_conversations() -> None:
    human = of_all([0] * 4 + [2] * 4)
    right = of_all([0] * 4 + [2] * 4)
    half = of_all([0] * 4 + [0] * 4)
    groups = list("aabbccdd")
    assert emp_f1_intervals(human, right, groups)["emp_f1"] == (100, 100)
    low, high = emp_f1_intervals(human, half, groups)["emp_f1"] or (0, 0)
    # Some resamples have one of the two halves alone: all wrong, all right.
    assert (low, high) == (0, 100)
    assert emp_f1_intervals(human, half, ["one"] * 8)["emp_f1"] is None


def test_the_difference_of_two_systems_is_paired() -> None:
    rows = 200
    human = of_all([0, 2] * (rows // 2))
    wrong = [number % 4 == 0 for number in range(rows)]
    worse = of_all([1 if w else 2 * (n % 2) for n, w in enumerate(wrong)])
    groups = list(range(rows))
    alone = emp_f1_intervals(human, worse, groups)["emp_f1"]
    same = emp_f1_intervals(human, worse, groups, against=worse)["emp_f1"]
    assert same == (0, 0)
    lower = emp_f1_intervals(human, worse, groups, against=human)["emp_f1"]
    assert alone is not None
    assert lower is not None
    assert lower == pytest.approx((alone[0] - 100, alone[1] - 100))
    assert lower[1] < 0


def test_words_in_common() -> None:
    assert bleu(["I am so sorry to hear that."], ["I am so sorry to hear that."]) == pytest.approx(
        100
    )
    # The longest common subsequence of "a b c d" and "a x c" is "a c": precision 2/4, recall 2/3.
    assert rouge_l("a b c d", "a x c") == pytest.approx(
        100 * 2 * (1 / 2) * (2 / 3) / (1 / 2 + 2 / 3)
    )


def test_figures_by_hand() -> None:
    levels = {m: dict.fromkeys(MECHANISMS, m) for m in (0, 2)}
    rows = [
        Response(Exchange("x", "a x c"), "a b c d", levels[2], levels[2], 10.0),
        Response(Exchange("y", "Yes."), "No.", levels[0], levels[2], 1000.0),
    ]
    figures, intervals = figures_of(RESPONSE_MEASURES, Responses(rows))
    assert list(figures) == list(RESPONSE_MEASURES)
    # Level 2: 2·1/(1+2), with weight one half; level 0 is never met.
    assert figures["emp_f1"] == pytest.approx(100 / 3)
    assert figures["perplexity"] == pytest.approx(100)
    assert intervals["perplexity"] == pytest.approx((10, 1000))
    assert figures["words"] == 2.5
    assert figures["empathy"] == 6
    assert figures["distinct_1"] == 1
    assert figures["rouge_l"] == pytest.approx(rouge_l("a b c d", "a x c") / 2)
    assert intervals["bleu"] is None
