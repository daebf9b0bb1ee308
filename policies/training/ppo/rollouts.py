"""What a generator answered to a batch of exchanges, and all that PPO has to know of it.

An `Outcome` is a response in plain numbers and words, so that the processes can hand theirs round:
advantages and figures are of the whole batch, whoever sampled it.

Legend: B responses, T tokens of the longest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from policies.generating.decoding import Sampled
from policies.generating.generator import Generator
from policies.generating.models import Encoded
from policies.training import figures, objective
from policies.training.contracts import Penalty
from rewriting.data.columns import data_columns
from rewriting.exchange import Exchange
from rewriting.runtime.language_models.kl import per_token
from rewriting.runtime.seeds import derive_seed
from rewriting.runtime.training.engine import in_batches
from rewriting.statistics.means import mean


@dataclass(frozen=True, slots=True)
class Rollout:
    """The responses of this process; the contexts are kept encoded for reference and update."""

    exchanges: list[Exchange]
    encoded: Encoded
    sampled: Sampled
    responses: list[str]


def sample_responses(
    generator: Generator, rows: Sequence[Exchange], *, seed: int, step: int = 0, first_row: int = 0
) -> Rollout:
    """A response to each exchange.

    first_row: the place of the first one in the batch of all processes. Seeds follow from (seed,
    step, row in that batch): a response does not depend on how many processes share the batch.
    """
    encoded = generator.encode(rows)
    places = range(first_row, first_row + len(rows))
    seeds = [derive_seed(seed, "rollout", step, place) for place in places]
    sampled = generator.sample(encoded, seeds)
    responses = [generator.text(tokens) for tokens in sampled.tokens]
    return Rollout(list(rows), encoded, sampled, responses)


def reward_columns(rollout: Rollout, names: Sequence[str]) -> dict[str, list[Any]]:
    """What a reward is called with: the responses, and the columns of the data."""
    return data_columns(rollout.exchanges, names) | {"completions": list(rollout.responses)}


@torch.no_grad()
def reference_log_probs(generator: Generator, rollout: Rollout, batch_size: int) -> list[Tensor]:
    """log π_ref of every token of each response; responses of similar length go together."""
    tokens = rollout.sampled.tokens
    found: dict[int, Tensor] = {}
    for rows in in_batches(range(len(tokens)), batch_size, lambda row: len(tokens[row])):
        chosen = [tokens[row] for row in rows]
        log_probs = generator.log_probs(rollout.encoded.select(rows), chosen, role="reference")
        for row, response, log_prob_T in zip(rows, chosen, log_probs.log_prob_BT, strict=True):
            found[row] = log_prob_T[: len(response)].cpu()
    return [found[row] for row in range(len(tokens))]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reward of one response, its terms, and its text."""

    reward: float | None
    """None where no rewarded term applies."""
    terms: Mapping[str, float | None]
    response: str
    finished: bool
    log_probs: list[float]
    values: list[float]
    entropies: list[float]
    ref_log_probs: list[float] | None = None
    parts: Mapping[str, float | None] = field(default_factory=dict)
    """What terms report beside their value, by TERM/PART."""

    @property
    def k1(self) -> float | None:
        """The KL of the response to the reference, if that was asked."""
        if self.ref_log_probs is None:
            return None
        return math.fsum(self.log_probs) - math.fsum(self.ref_log_probs)


def outcomes_of(
    rollout: Rollout, scores: Any, references: Sequence[Tensor] | None = None
) -> list[Outcome]:
    """Outcomes from the rewards' Scores and, if they were asked for, the reference's numbers."""
    sampled = rollout.sampled
    return [
        Outcome(
            reward=scores.totals[row],
            terms={name: values[row] for name, values in scores.terms.items()},
            response=rollout.responses[row],
            finished=sampled.finished[row],
            log_probs=sampled.log_probs[row].tolist(),
            values=sampled.values[row].tolist(),
            entropies=sampled.entropies[row].tolist(),
            ref_log_probs=references[row].tolist() if references is not None else None,
            parts={name: values[row] for name, values in scores.parts.items()},
        )
        for row in range(len(rollout.responses))
    ]


def summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The figures of the responses of all processes. What nothing is known of is left out."""
    responses = [outcome.response for outcome in outcomes]
    row = figures.reward_figures(outcomes) | {
        "response_tokens": mean([float(len(outcome.log_probs)) for outcome in outcomes]),
        "response_words": mean([float(len(response.split())) for response in responses]),
        "unfinished": mean([float(not outcome.finished) for outcome in outcomes]),
        "distinct_responses": figures.distinct(responses),
        "share_questions": mean([float("?" in response) for response in responses]),
        "share_opening": figures.share_of_opening(responses),
        "entropy": mean([value for outcome in outcomes for value in outcome.entropies]),
    }
    return figures.known(row)


@dataclass(frozen=True, slots=True)
class Targets:
    """What the update works towards, of the whole batch and on the CPU, [B, T] each."""

    mask_BT: Tensor
    """False as well in responses without a reward: they teach nothing."""
    log_prob_BT: Tensor
    value_BT: Tensor
    advantage_BT: Tensor
    return_BT: Tensor


def targets_of(
    outcomes: Sequence[Outcome],
    kl: Penalty | None,
    *,
    gamma: float,
    lam: float,
    whiten: bool,
    end_penalty: float = 0.0,
) -> tuple[Targets, dict[str, float]]:
    """Rewards per token, advantages and returns; and the figures of this arithmetic."""
    log_prob_BT = _padded([outcome.log_probs for outcome in outcomes])
    value_BT = _padded([outcome.values for outcome in outcomes])
    known_B = torch.tensor([outcome.reward is not None for outcome in outcomes])
    written_BT = _padded([[1.0] * len(outcome.log_probs) for outcome in outcomes]).bool()
    mask_BT = written_BT & known_B[:, None]
    penalty_BT, row = torch.zeros_like(log_prob_BT), {}
    if kl is not None:
        ref_BT = _padded([outcome.ref_log_probs or [] for outcome in outcomes])
        penalty_BT = kl(log_prob_BT, ref_BT, written_BT)
        row = _kl_figures(log_prob_BT, ref_BT, penalty_BT, written_BT)
    score_B = torch.tensor([outcome.reward or 0.0 for outcome in outcomes])
    finished_B = torch.tensor([outcome.finished for outcome in outcomes])
    score_B = objective.with_end_penalty(score_B, finished_B, end_penalty)
    reward_BT = objective.token_rewards(score_B, penalty_BT, mask_BT)
    advantage_BT, return_BT = objective.gae(reward_BT, value_BT, mask_BT, gamma, lam)
    row |= _value_figures(value_BT, advantage_BT, return_BT, mask_BT)
    if whiten:
        advantage_BT = objective.whitened(advantage_BT, mask_BT)
    return Targets(mask_BT, log_prob_BT, value_BT, advantage_BT, return_BT), row


def _padded(rows: Sequence[Sequence[float]]) -> Tensor:
    return pad_sequence([torch.tensor(row, dtype=torch.float32) for row in rows], True)


def _kl_figures(
    log_prob_BT: Tensor, ref_BT: Tensor, penalty_BT: Tensor, mask_BT: Tensor
) -> dict[str, float]:
    """k1, k3 and the price of a response, on average."""
    sums = {
        "kl_k1": per_token(log_prob_BT, ref_BT, mask_BT, "k1").double().sum(),
        "kl_k3": per_token(log_prob_BT, ref_BT, mask_BT, "k3").double().sum(),
        "kl_penalty": penalty_BT.double().sum(),
    }
    row = {name: float(total) / len(mask_BT) for name, total in sums.items()}
    figures.check_kl(list(row.values()))
    return row


def _value_figures(
    value_BT: Tensor, advantage_BT: Tensor, return_BT: Tensor, mask_BT: Tensor
) -> dict[str, float]:
    if not mask_BT.any():
        return {"advantage": 0.0}
    row = {
        "value": float(value_BT[mask_BT].mean()),
        "return": float(return_BT[mask_BT].mean()),
        "advantage": float(advantage_BT[mask_BT].abs().mean()),
    }
    explained = objective.explained_variance(value_BT, return_BT, mask_BT)
    return row if explained is None else row | {"explained_variance": explained}
