"""Figures by hand."""

import pytest

from policies.training.reinforce.log import Outcome, distinct, kl_summary, summary

OUTCOMES = [
    Outcome(1.0, {"a": 1.0, "b": None}, ("insert",), ("Oh dear.",), (4,), (1.0,), 0.5, 0.2, 0.05),
    Outcome(3.0, {"a": 3.0, "b": None}, ("keep",), (), (), (0.5,), 1.5, 0.4, 0.15),
    Outcome(5.0, {"a": 2.0, "b": 7.0}, ("replace", "keep"), ("oh  Dear.",), (6,), (0.0, 0.5)),
    Outcome(None, {"a": 2.0, "b": None}, ("insert",), ("I see you.",), (5,), (0.0,)),
]


def test_figures_by_hand() -> None:
    assert summary(OUTCOMES, num_samples=2) == pytest.approx(
        {
            "reward": 3.0,
            "reward_std": (8 / 3) ** 0.5,
            "reward_spread": (1.0 + 0.0) / 2,
            "rewards/a": 2.0,
            "rewards/b": 7.0,
            "share_insert": 0.4,
            "share_replace": 0.2,
            "share_keep": 0.4,
            "actions": 1.25,
            "sentence_tokens": 5.0,
            "sentence_words": 7 / 3,
            "distinct_sentences": 0.5,
            "position_entropy": 0.4,
        }
    )
    assert kl_summary(OUTCOMES) == pytest.approx({"kl_k1": 0.5, "kl_k3": 0.15, "kl_penalty": 0.05})


def test_what_is_not_known_is_left_out() -> None:
    kept = Outcome(None, {"a": None}, ("keep",), (), (), (0.0,))
    assert summary([kept, kept], 2) == {
        "share_insert": 0.0,
        "share_replace": 0.0,
        "share_keep": 1.0,
        "actions": 1.0,
        "position_entropy": 0.0,
    }


def test_distinct() -> None:
    assert distinct(["a", "b", "c"]) == 1
    assert distinct(["a", "A ", "a"]) == 0
    assert distinct(["a"]) is None
