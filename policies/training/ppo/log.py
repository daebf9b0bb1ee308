"""The figures that PPO logs of every step, and the responses that it shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from policies.training.collapse import signs
from policies.training.figures import (
    deviation,
    distinct,
    mean,
    rewards_summary,
    share_of_opening,
)
from policies.training.ppo.rollouts import Outcome, Rollout

METRICS: Final[Mapping[str, str]] = {
    "step": "Steps done. Row 0, where there are dev exchanges, is the policy as it began.",
    "reward": "Mean reward of a response: the weighted sum of the terms, without any penalty.",
    "reward_std": "Standard deviation of that reward over the responses of the step.",
    "rewards/*": "Mean of a reward term as it gave it, before scale and weight.",
    "rewards/*/*": "Mean of a part that a term reports: `level_alignment` has each mechanism's.",
    "kl_k1": "KL to the reference per response, log π − log π_ref summed over its tokens.",
    "kl_k3": "The same by an estimator that is never negative and less noisy.",
    "kl_penalty": "What was subtracted from the rewards of a response's tokens for it.",
    "kl/*": "State of the KL controller; `kl/value` is its coefficient β.",
    "response_tokens": "Mean length of a response in tokens, the ending one included.",
    "response_words": "The same in words.",
    "unfinished": "Share of the responses that were cut off before they ended.",
    "distinct_responses": "1: all responses of the step differ; 0: all are the same.",
    "share_questions": "Share of the responses that ask something.",
    "share_opening": "Share of the responses that begin with the commonest three words.",
    "entropy": "Mean entropy of the distribution of a token, in nats.",
    "value": "What the value head expected before a token, on average.",
    "return": "What was to come from there on, on average: the value head's target.",
    "explained_variance": "How much of the returns the value head foresaw: 1 all, 0 nothing.",
    "advantage": "Mean size of the advantages before whitening. 0: nothing to learn here.",
    "policy_loss": "PPO's clipped policy loss per token, averaged over the updates.",
    "value_loss": "The value head's loss per token, averaged over the updates.",
    "update_kl": "KL from the policy that sampled to the updated one, per token, averaged.",
    "clipped": "Share of tokens that PPO's clipping left without a gradient.",
    "updates": "Optimizer steps: inner epochs × minibatches, fewer where the KL stopped them.",
    "grad_norm": "Norm of the gradient before clipping, averaged over the updates.",
    "rate": "Learning rate.",
    "seconds_*": "Time for sampling, rewards, reference and update, in the first process.",
    "dev/*": "The same figures on the dev exchanges, always with the same seeds.",
}
"""Figure → what it says. A star stands for names that depend on the run."""

PANELS: Final[Mapping[str, Sequence[str]]] = {
    "KL to the reference": ("kl_k1", "kl_k3"),
    "responses, tokens": ("response_tokens",),
    "unfinished": ("unfinished",),
    "distinct responses": ("distinct_responses",),
    "one trick": ("share_questions", "share_opening"),
    "entropy of a token": ("entropy",),
    "foreseen by the value head": ("explained_variance",),
    "clipped": ("clipped",),
}
"""Of the picture with the curves, after those of the rewards."""


WARNINGS: Final[Mapping[str, str]] = {
    "alike": "nearly all responses are the same. Raise kl_weight, lower learning_rate, or reward "
    "what is specific (specificity, mutual_information, repetition with across_batch).",
    "long": "responses have grown to twice their length. Some reward pays for it: raise kl_weight "
    "or end_penalty, or lower max_new_tokens.",
    "questions": "nearly all responses ask something. Some reward pays for asking whatever is "
    "asked: look at rewards/*/explorations and samples.jsonl, or raise kl_weight.",
    "opening": "nearly all responses begin with the same words. Raise kl_weight, lower "
    "learning_rate, or reward what is specific (repetition with across_batch).",
    "mechanism": "one mechanism pays for nearly all of the rise of a reward since the start: see "
    "rewards/*/*. Read samples.jsonl, raise kl_weight, or give the mechanisms other weights.",
    "flat": "all responses get the same reward, so there is nothing to learn from. Check the "
    "rewards on samples.jsonl.",
}
"""Sign of policies/training/collapse.py → what it means here, with the remedy."""


def summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The figures of the responses of all processes. What nothing is known of is left out."""
    rewards = [outcome.reward for outcome in outcomes]
    figures = {"reward": mean(rewards), "reward_std": deviation(rewards)}
    figures |= rewards_summary([{**outcome.terms, **outcome.parts} for outcome in outcomes])
    responses = [outcome.response for outcome in outcomes]
    figures |= {
        "response_tokens": mean([float(len(outcome.log_probs)) for outcome in outcomes]),
        "response_words": mean([float(len(response.split())) for response in responses]),
        "unfinished": mean([float(not outcome.finished) for outcome in outcomes]),
        "distinct_responses": distinct(responses),
        "share_questions": mean([float("?" in response) for response in responses]),
        "share_opening": share_of_opening(responses),
        "entropy": mean([value for outcome in outcomes for value in outcome.entropies]),
    }
    return {name: value for name, value in figures.items() if value is not None}


def new_warnings(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """What is to be said after the last row: new signs of policies/training/collapse.py."""
    names = {"distinct_responses": "distinct_sentences", "response_tokens": "sentence_tokens"}
    renamed = [{names.get(name, name): value for name, value in row.items()} for row in rows]
    before = signs(renamed[:-1])
    return [WARNINGS[sign] for sign in signs(renamed) if sign not in before]


def sample_rows(step: int, rollout: Rollout, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Responses as lines of samples.jsonl."""
    return [
        {
            "step": step,
            "id": exchange.id,
            "history": list(exchange.history),
            "seeker_post": exchange.seeker_post,
            "response_post": exchange.response_post,
            "rewritten_response": outcome.response,
            "reward": outcome.reward,
            "rewards": dict(outcome.terms),
            "kl": _kl(outcome),
        }
        for exchange, outcome in zip(rollout.exchanges, outcomes, strict=True)
    ]


def _kl(outcome: Outcome) -> float | None:
    if outcome.ref_log_probs is None:
        return None
    return math.fsum(outcome.log_probs) - math.fsum(outcome.ref_log_probs)


def headline(row: Mapping[str, float]) -> str:
    """A row of the log in a few words."""
    keys = ("reward", "kl_k1", "response_tokens", "distinct_responses")
    known = [f"{key} {row[key]:.3f}" for key in keys if key in row]
    return f"step {row['step']:.0f}: {', '.join(known)}"
