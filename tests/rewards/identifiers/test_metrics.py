"""Scores of rationales against numbers worked out by hand."""

import pytest

from rewards.identifiers.metrics import iou, iou_f1, token_f1


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
