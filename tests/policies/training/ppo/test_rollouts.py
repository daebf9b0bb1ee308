"""What is logged of responses, and what an update works towards, by hand."""

import pytest

from policies.training.ppo.rollouts import Outcome, summary, targets_of
from rewards.terms.kl import FixedController, KLPenalty
from rewriting.errors import UserError


def test_the_targets_of_a_batch_by_hand() -> None:
    """γ = λ = 1, β = 0.5, end penalty 2: an advantage is what is still to come less the value."""
    outcomes = [
        Outcome(4.0, {}, "a", True, [-1.0, -1.0], [0.5, 1.0], [], [-1.0, -3.0]),
        Outcome(None, {}, "b", True, [-1.0], [9.0], [], [-2.0]),
        Outcome(1.0, {}, "c", False, [-2.0], [0.0], [], [-1.0]),
    ]
    kl = KLPenalty(FixedController(0.5))
    targets, figures = targets_of(outcomes, kl, gamma=1.0, lam=1.0, whiten=False, end_penalty=2.0)
    assert targets.mask_BT.tolist() == [[True, True], [False, False], [True, False]]
    # Row 0: KL 0 and 2, so rewards 0 and 4 − 1. Row 2: KL −1, so 1 − 2 + 0.5.
    assert targets.return_BT.tolist() == [[3.0, 3.0], [0.0, 0.0], [-0.5, 0.0]]
    assert targets.advantage_BT.tolist() == [[2.5, 2.0], [0.0, 0.0], [-0.5, 0.0]]
    assert figures["kl_k1"] == pytest.approx((2 + 1 - 1) / 3)
    assert figures["kl_penalty"] == pytest.approx((1 + 0.5 - 0.5) / 3)
    assert figures["advantage"] == pytest.approx(5 / 3)
    assert figures["value"] == pytest.approx(0.5)


def test_a_reference_that_rules_a_token_out_is_an_error() -> None:
    outcome = Outcome(1.0, {}, "a", True, [-1.0], [0.0], [0.0], [-float("inf")])
    with pytest.raises(UserError, match="top_p 1"):
        targets_of([outcome], KLPenalty(FixedController(1.0)), gamma=1, lam=1, whiten=True)


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
