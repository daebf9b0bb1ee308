"""Figures by hand, responses on the screen, and words for every warning."""

import pytest

from policies.training.collapse import SIGNS, WINDOW
from policies.training.ppo.log import (
    WARNINGS,
    headline,
    new_warnings,
    summary,
)
from policies.training.ppo.rollouts import Outcome
from policies.training.samples import print_responses
from rewriting.exchange import MECHANISMS


def test_figures_by_hand() -> None:
    outcomes = [
        Outcome(1.0, {"a": 1.0}, "Oh dear.", True, [-1.0, -2.0], [0.5, 0.5], [1.0, 2.0]),
        Outcome(None, {"a": None}, "oh  dear.", False, [-1.0] * 4, [0.0] * 4, [0.0] * 4),
        Outcome(3.0, {"a": 5.0}, "Why?", True, [-1.0], [1.0], [3.0], parts={"a/explorations": 0.5}),
    ]
    assert summary(outcomes) == pytest.approx(
        {
            "reward": 2.0,
            "reward_std": 1.0,
            "rewards/a": 3.0,
            "response_tokens": 7 / 3,
            "response_words": 5 / 3,
            "unfinished": 1 / 3,
            "distinct_responses": 0.5,
            "rewards/a/explorations": 0.5,
            "share_questions": 1 / 3,
            "share_opening": 2 / 3,
            "entropy": 6 / 7,
        }
    )


def test_a_table_of_responses(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "seeker_post": "I failed.",
        "response_post": "Oh.",
        "rewritten_response": "Why?",
        "reward": 1.5,
        "rewards": {"a": None, "b": 2.0},
    }
    print_responses("step 3", [row])
    printed = capsys.readouterr().out
    assert "Why?" in printed
    assert "total 1.500" in printed
    assert "b 2.000" in printed
    assert headline({"step": 3, "reward": 0.25}) == "step 3: reward 0.250"


def test_every_sign_has_words_of_its_own() -> None:
    assert set(WARNINGS) == set(SIGNS) - {"keeps"}  # a generator never keeps


def test_signs_are_seen_in_the_figures_of_ppo() -> None:
    good = {"distinct_responses": 0.9, "response_tokens": 9.0, "reward_std": 0.5}
    good |= {"share_questions": 0.4, "share_opening": 0.1}
    good |= {f"rewards/level_alignment/{m}": 0.3 for m in MECHANISMS}
    bad: dict[str, dict[str, float]] = {
        "alike": {"distinct_responses": 0.0},
        "long": {"response_tokens": 30.0},
        "flat": {"reward_std": 0.0},
        "questions": {"share_questions": 1.0},
        "opening": {"share_opening": 0.9},
        "mechanism": {f"rewards/level_alignment/{MECHANISMS[2]}": 0.6},
    }
    assert set(bad) == set(WARNINGS)
    for sign, changed in bad.items():
        rows = [good] * WINDOW + [good | changed] * WINDOW
        said = [new_warnings(rows[:end]) for end in range(1, len(rows) + 1)]
        assert [text for texts in said for text in texts] == [WARNINGS[sign]]
