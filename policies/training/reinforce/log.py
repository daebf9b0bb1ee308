"""The figures that a training run logs of every step.

`METRICS` explains every figure. An `Outcome` is an episode in plain numbers and words, so that the
processes can hand theirs round: every figure is of the whole batch, whoever computed it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from policies.training.figures import (
    deviation,
    distinct,
    is_question,
    mean,
    rewards_summary,
    share_of_opening,
)
from policies.training.rollouts import Episode
from rewriting.edits import Operation

METRICS: Final[Mapping[str, str]] = {
    "step": "Steps done. Row 0, where there are dev exchanges, is the policy as it began.",
    "reward": "Mean reward of an episode: the weighted sum of the terms, without the KL penalty.",
    "reward_std": "Standard deviation of that reward over all episodes of the step.",
    "reward_spread": "The same among the samples of one exchange, averaged: what can be learnt.",
    "rewards/*": "Mean of a reward term as it gave it, before scale and weight.",
    "rewards/*/*": "Mean of a part that a term reports: `empathy_change` has each mechanism's.",
    "kl_k1": "KL to the reference per episode, log π − log π_ref summed over positions and tokens.",
    "kl_k3": "The same by an estimator that is never negative and less noisy.",
    "kl_penalty": "What was subtracted from the reward of an episode for it.",
    "kl/*": "State of the KL controller; `kl/value` is its coefficient β.",
    "share_insert": "Share of the actions that insert a sentence.",
    "share_replace": "Share of the actions that replace one.",
    "share_keep": "Share of the actions that change nothing.",
    "actions": "Actions of an episode: spans, times the edits that each of them got.",
    "sentence_tokens": "Mean length of the new sentences, in tokens, the ending one included.",
    "sentence_words": "The same in words.",
    "distinct_sentences": "1: all new sentences of the step differ; 0: all are the same.",
    "share_questions": "Share of the new sentences that are questions.",
    "share_opening": "Share of the new sentences that begin with the commonest three words.",
    "position_entropy": "Mean entropy of the choice of a position, in nats.",
    "token_entropy": "Mean entropy of a token of a sentence, in nats, estimated by −log π of it.",
    "advantage": "Mean size of the advantages. 0: nothing to learn from this step.",
    "loss": "The policy loss per episode, averaged over `inner_epochs`. Its level means little.",
    "clipped": "Share of tokens that PPO's clipping left without a gradient.",
    "grad_norm": "Norm of the gradient before clipping, averaged over `inner_epochs`.",
    "rate": "Learning rate.",
    "seconds_*": "Time for sampling, rewards, reference and update, in the first process.",
    "dev/*": "The same figures on the dev exchanges, one sample each, always with the same seeds.",
}
"""Figure → what it says. A star stands for names that depend on the run."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one episode."""

    reward: float | None
    """None where no rewarded term applies."""
    terms: Mapping[str, float | None]
    operations: tuple[str, ...]
    sentences: tuple[str, ...]
    num_tokens: tuple[int, ...]
    """Of the new sentences."""
    entropies: tuple[float, ...]
    """Of the choices of a position."""
    k1: float = 0.0
    k3: float = 0.0
    penalty: float = 0.0
    parts: Mapping[str, float | None] = field(default_factory=dict)
    """What terms report beside their value, by TERM/PART."""
    surprisals: tuple[float, ...] = ()
    """−log π of every token that was sampled, also of sentences that do not stand."""


def outcomes_of(
    episodes: Sequence[Episode],
    scores: Any,
    kl_E: Sequence[Mapping[str, float]] | None = None,
) -> list[Outcome]:
    """Outcomes from the rewards' Scores, and the k1, k3 and penalty of each episode if known."""
    outcomes = []
    for number, episode in enumerate(episodes):
        outcomes.append(
            Outcome(
                reward=scores.totals[number],
                terms={name: values[number] for name, values in scores.terms.items()},
                operations=tuple(str(turn.edit.operation) for turn in episode.turns),
                sentences=episode.sentences,
                num_tokens=tuple(len(turn.action.tokens) for turn in episode.standing_turns),
                entropies=tuple(turn.entropy for turn in episode.turns),
                parts={name: values[number] for name, values in scores.parts.items()},
                surprisals=tuple(s for turn in episode.turns for s in turn.surprisals),
                **(kl_E[number] if kl_E else {}),
            )
        )
    return outcomes


def summary(outcomes: Sequence[Outcome], num_samples: int = 1) -> dict[str, float]:
    """The figures of a step. A figure that nothing is known of is left out.

    outcomes: of all processes, the `num_samples` of an exchange beside each other. Sums are exact
    (`math.fsum`), so that the order of the outcomes does not matter.
    """
    rewards = [outcome.reward for outcome in outcomes]
    groups = [rewards[i : i + num_samples] for i in range(0, len(rewards), num_samples)]
    operations = [operation for outcome in outcomes for operation in outcome.operations]
    sentences = [sentence for outcome in outcomes for sentence in outcome.sentences]
    figures = {
        "reward": mean(rewards),
        "reward_std": deviation(rewards),
        "reward_spread": mean([deviation(group) for group in groups]) if num_samples > 1 else None,
    }
    figures |= rewards_summary([{**outcome.terms, **outcome.parts} for outcome in outcomes])
    figures |= {
        f"share_{operation}": mean([float(found == operation) for found in operations])
        for operation in Operation
    }
    figures |= {
        "actions": mean([float(len(outcome.operations)) for outcome in outcomes]),
        "sentence_tokens": mean([float(n) for o in outcomes for n in o.num_tokens]),
        "sentence_words": mean([float(len(sentence.split())) for sentence in sentences]),
        "distinct_sentences": distinct(sentences),
        "share_questions": mean([float(is_question(sentence)) for sentence in sentences]),
        "share_opening": share_of_opening(sentences),
        "position_entropy": mean([value for o in outcomes for value in o.entropies]),
        "token_entropy": mean([value for o in outcomes for value in o.surprisals]),
    }
    return {name: value for name, value in figures.items() if value is not None}


def kl_summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The mean KL of an episode and what it cost."""
    columns = {"kl_k1": "k1", "kl_k3": "k3", "kl_penalty": "penalty"}
    return {
        name: math.fsum(getattr(outcome, field) for outcome in outcomes) / len(outcomes)
        for name, field in columns.items()
    }


def sample_rows(
    step: int, episodes: Sequence[Episode], outcomes: Sequence[Outcome], num_samples: int = 1
) -> list[dict[str, Any]]:
    """The first of the `num_samples` samples of every exchange, as lines of samples.jsonl."""
    pairs = list(zip(episodes, outcomes, strict=True))[::num_samples]
    return [
        {
            "step": step,
            "id": episode.exchange.id,
            "seeker_post": episode.exchange.seeker_post,
            "response_post": episode.exchange.response_post,
            "rewritten_response": episode.rewrite.rewritten_response,
            "edits": [edit.row() for edit in episode.rewrite.edits],
            "reward": outcome.reward,
            "rewards": dict(outcome.terms),
            "kl": outcome.k1,
        }
        for episode, outcome in pairs
    ]


def headline(row: Mapping[str, float]) -> str:
    """A row of the log in a few words."""
    keys = ("reward", "kl_k1", "share_keep", "distinct_sentences")
    known = [f"{key} {row[key]:.3f}" for key in keys if key in row]
    return f"step {row['step']:.0f}: {', '.join(known)}"
