"""A training's log as curves."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rewriting.errors import UserError
from rewriting.report.curves import Curve, read_log, smoothed, thinned


def test_the_reward_comes_first_then_its_terms(jsonl: Callable[..., Path]) -> None:
    log = jsonl(
        [
            {"step": 0, "rewards/fluency": 0.1, "loss": 3.0, "reward": 1.0},
            {"step": 1, "rewards/fluency": None, "rewards/mine": 5, "reward": float("nan")},
            {"step": 3, "rewards/fluency": 0.3, "reward": 2.0},
        ]
    )
    assert read_log(log) == [
        Curve("reward", (0, 3), (1.0, 2.0)),
        Curve("fluency", (0, 3), (0.1, 0.3)),
        Curve("mine", (1,), (5,)),
    ]


def test_what_was_measured_on_dev_goes_with_its_curve(jsonl: Callable[..., Path]) -> None:
    log = jsonl(
        [
            {"step": 0, "dev/reward": 0.5, "dev/rewards/fluency": 0.1, "dev/loss": 2.0},
            {"step": 1, "reward": 1.0, "rewards/fluency": 0.3, "dev/reward": 0.75},
        ]
    )
    assert read_log(log) == [
        Curve("reward", (1,), (1.0,), ((0, 0.5), (1, 0.75))),
        Curve("fluency", (1,), (0.3,), ((0, 0.1),)),
    ]


def test_an_unfinished_last_line_is_no_mistake(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"step": 0, "reward": 1}) + '\n{"step": 1, "rew')
    assert read_log(log) == [Curve("reward", (0,), (1,))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("broken\n{}\n", "line 1: not valid JSON"),
        ("[1]\n", "line 1: a line of a training log"),
        ('{"reward": 1}\n', "line 1: a line of a training log"),
        ('{"step": 1, "loss": 2}\n', "no curves"),
        ("", "no curves"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(text)
    with pytest.raises(UserError, match=message):
        read_log(log)
    with pytest.raises(UserError, match="no such training log"):
        read_log(tmp_path / "gone.jsonl")


def test_long_curves_become_means_of_stretches() -> None:
    curve = Curve("reward", tuple(range(6)), (1, 3, 5, 7, 9, 11))
    assert thinned(curve, 3) == Curve("reward", (0.5, 2.5, 4.5), (2, 6, 10))
    assert thinned(curve, 6) is curve


def test_smoothing_narrows_at_the_ends() -> None:
    assert smoothed([0, 0, 6, 0, 0], share=0.4) == [0, 2, 2, 2, 0]
    assert smoothed([1, 2, 3]) == [1, 2, 3]
