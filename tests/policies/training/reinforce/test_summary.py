"""Figures by hand."""

import pytest
import torch

from policies.editing.actions import Action
from policies.training.reinforce.rollouts import (
    Episode,
    Outcome,
    Turn,
    kl_summary,
    outcomes_of,
    summary,
)
from rewards.reward_sum import Scores
from rewriting.exchange import Exchange, Rewrite
from rewriting.loop import EditState

OUTCOMES = [
    Outcome(1.0, {"a": 1.0, "b": None}, ("insert",), ("Oh dear.",), (4,), (1.0,), 0.5, 0.2, 0.05),
    Outcome(3.0, {"a": 3.0, "b": None}, ("keep",), (), (), (0.5,), 1.5, 0.4, 0.15),
    Outcome(5.0, {"a": 2.0, "b": 7.0}, ("replace", "keep"), ("oh  Dear.",), (6,), (0.0, 0.5)),
    Outcome(
        None,
        {"a": 2.0, "b": None},
        ("insert",),
        ("“Oh dear, why?” 🙂",),
        (5,),
        (0.0,),
        parts={"a/explorations": 0.5},
        surprisals=(1.0, 2.5),
    ),
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
            "sentence_words": 8 / 3,
            "distinct_sentences": 0.5,
            "share_questions": 1 / 3,
            "share_opening": 2 / 3,
            "rewards/a/explorations": 0.5,
            "position_entropy": 0.4,
            "token_entropy": 1.75,
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


def test_what_happened_to_an_episode() -> None:
    """Two inserts, the first of which is replaced: figures of sentences are of what stands."""
    log_probs = [torch.tensor([-0.1, -1.0, -2.0]), torch.tensor([-0.2, -3.0])]
    exchange = Exchange("I failed.", "Try.")
    actions = [Action(0, (5, 6), "A ghost."), Action(3, (7,), "Oh dear.")]
    spans = [("Try.",), ("A ghost.", "Try.")]
    turns = tuple(
        Turn(EditState(exchange, span), action, log_prob_T, 0.5)
        for span, action, log_prob_T in zip(spans, actions, log_probs, strict=True)
    )
    rewrite = Rewrite(exchange, "Oh dear. Try.", tuple(turn.edit for turn in turns))
    scores = Scores({"a": [1.0]}, {"a": [1.0]}, [1.0], {"a/explorations": [0.25]})
    (outcome,) = outcomes_of([Episode(turns, rewrite)], scores)
    assert outcome.operations == ("insert", "replace")
    assert outcome.sentences == ("Oh dear.",)
    assert outcome.num_tokens == (1,)
    assert outcome.surprisals == (1.0, 2.0, 3.0)
    assert outcome.parts == {"a/explorations": 0.25}
