"""Figures by hand, responses on the screen, and words for every warning."""

import pytest

from policies.training.collapse import SIGNS
from policies.training.ppo.log import WARNINGS, headline, print_responses, summary
from policies.training.ppo.rollouts import Outcome


def test_figures_by_hand() -> None:
    outcomes = [
        Outcome(1.0, {"a": 1.0}, "Oh dear.", True, [-1.0, -2.0], [0.5, 0.5], [1.0, 2.0]),
        Outcome(None, {"a": None}, "oh  dear.", False, [-1.0] * 4, [0.0] * 4, [0.0] * 4),
        Outcome(3.0, {"a": 5.0}, "I see.", True, [-1.0], [1.0], [3.0]),
    ]
    assert summary(outcomes) == pytest.approx(
        {
            "reward": 2.0,
            "reward_std": 1.0,
            "rewards/a": 3.0,
            "response_tokens": 7 / 3,
            "response_words": 2.0,
            "unfinished": 1 / 3,
            "distinct_responses": 0.5,
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
