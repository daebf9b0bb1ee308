"""Scores of levels and rationales against numbers worked out by hand."""

import pytest

from rewards.identifiers.metrics import (
    accuracy,
    expected_calibration_error,
    iou,
    iou_f1,
    macro_f1,
    token_f1,
)

GOLD, CALLED = [0, 0, 0, 1, 2], [0, 0, 1, 1, 0]


def test_accuracy_by_hand() -> None:
    assert accuracy(GOLD, CALLED) == 3 / 5


def test_macro_f1_by_hand() -> None:
    # Level 0: 2 hits, 3 + 3 → 4/6. Level 1: 1 hit, 1 + 2 → 2/3. Level 2: no hit, 1 + 0 → 0.
    assert macro_f1(GOLD, CALLED) == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)


def test_a_level_that_nobody_speaks_of_does_not_count() -> None:
    assert macro_f1([0, 1], [0, 1]) == 1
    assert macro_f1([0, 0], [0, 1]) == pytest.approx((2 / 3 + 0) / 2)


def test_gold_and_called_change_places_without_harm() -> None:
    assert macro_f1(GOLD, CALLED) == macro_f1(CALLED, GOLD)


def test_lengths_have_to_agree() -> None:
    with pytest.raises(ValueError, match="zip"):
        accuracy([0, 1], [0])


def test_token_f1_by_hand() -> None:
    # 2 · 1 hit / (2 + 1) marked words.
    assert token_f1([[True, True, False]], [[False, True, False]]) == pytest.approx(2 / 3)


def test_an_example_without_rationales_counts_1_and_one_sided_ones_0() -> None:
    nothing, something = [False, False], [True, False]
    for score in (token_f1, iou_f1):
        assert score([nothing], [nothing]) == 1
        assert score([[]], [[]]) == 1
        assert score([something], [nothing]) == 0
        assert score([nothing], [something]) == 0
        assert score([nothing, something], [nothing, nothing]) == 0.5


def test_iou_by_hand() -> None:
    assert iou((0, 4), (2, 6)) == 2 / 6
    assert iou((0, 2), (2, 4)) == 0
    assert iou((1, 3), (1, 3)) == 1


def mask(marks: str) -> list[bool]:
    return [mark == "x" for mark in marks]


@pytest.mark.parametrize(
    ("gold", "called", "score"),
    [
        ("xxxx..", "..xxxx", 0.0),  # 2 of 6
        ("xx....", "xxxx..", 1.0),  # 2 of 4 is just enough
        ("xx....", "xxxxx.", 0.0),
        ("xx..xx", "xx....", 2 / 3),  # precision 1, recall 1/2
        ("xx..xx", "xxxxxx", 0.0),  # one long run matches neither
        ("x.x.x.", "x.x...", 0.8),  # precision 1, recall 2/3
    ],
)
def test_iou_f1_matches_runs_at_one_half(gold: str, called: str, score: float) -> None:
    assert iou_f1([mask(gold)], [mask(called)]) == pytest.approx(score)


def test_calibration_error_by_hand() -> None:
    # Two rows at 0.8 (one right), one at 0.55 (right): (|1.6 − 1| + |0.55 − 1|) / 3.
    rows = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.25, 0.55]]
    assert expected_calibration_error(rows, [0, 2, 2]) == pytest.approx((0.6 + 0.45) / 3)


def test_certainty_that_is_right_has_no_calibration_error() -> None:
    assert expected_calibration_error([[1.0, 0.0, 0.0]], [0]) == 0
