"""Rollouts: what an agent did to a batch of exchanges, and how likely it was to do it.

An episode is one walk through one response (rewriting/loop.py): an action per span, or several
where a span allows more edits. Its reward is known at its end and belongs to all of its actions.

The choice of a position is treated as the first token of an action, so that policy gradient, KL and
clipping are written once, over the tokens of a row.

An `Outcome` is an episode in plain numbers and words, so that the processes can hand theirs round:
every figure is of the whole batch, whoever computed it.

Legend: B actions, T tokens of an action with the position as the first.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from policies.editing.actions import Action, Agent, LogProbs
from policies.training import figures
from policies.training.contracts import Penalty
from rewriting.data.columns import data_columns
from rewriting.edits import Edit, Operation, standing_edits
from rewriting.exchange import Exchange, Rewrite
from rewriting.loop import EditState, rewrite_by_edits
from rewriting.runtime.language_models.kl import per_token
from rewriting.runtime.seeds import derive_seed
from rewriting.runtime.training.engine import in_batches
from rewriting.statistics.means import mean


@dataclass(frozen=True, slots=True)
class Turn:
    """An action in its state, as it was sampled."""

    state: EditState
    action: Action
    log_prob_T: Tensor
    """log π of the position and of every token, under the distribution they were sampled from."""
    entropy: float
    """Of the distribution over positions, in nats."""

    @property
    def edit(self) -> Edit:
        return self.action.edit(len(self.state.span))

    @property
    def surprisals(self) -> list[float]:
        """−log π of the tokens of the sentence: on average over samples, their entropy."""
        return [-log_prob for log_prob in self.log_prob_T[1:].tolist()]

    @property
    def size(self) -> int:
        """About how much there is to read, in characters: to batch a turn with its like."""
        return sum(map(len, (self.state.exchange.seeker_post, *self.state.span)))


@dataclass(frozen=True, slots=True)
class Episode:
    """The turns of one exchange, and the rewrite that they led to."""

    turns: tuple[Turn, ...]
    rewrite: Rewrite

    @property
    def exchange(self) -> Exchange:
        return self.rewrite.exchange

    @property
    def sentences(self) -> tuple[str, ...]:
        """The new sentences that stand in the rewrite, in the order of its text."""
        return self.rewrite.new_sentences

    @property
    def standing_turns(self) -> tuple[Turn, ...]:
        """The turns whose sentence stands in the rewrite, as `sentences` has them."""
        changes = [turn for turn in self.turns if turn.edit.operation is not Operation.KEEP]
        return tuple(changes[number] for number in standing_edits(self.rewrite.edits))


@torch.no_grad()
def sample_episodes(
    agent: Agent,
    exchanges: Sequence[Exchange],
    *,
    num_samples: int,
    seed: int,
    step: int = 0,
    first_row: int = 0,
    span_length: int = 4,
    max_edits: int = 1,
    sentences_per_position: int = 1,
) -> list[Episode]:
    """`num_samples` episodes of each exchange: those of the first, those of the second, and so on.

    first_row: the place of the first exchange in the batch of all processes. Seeds follow from
    (seed, step, row in that batch, sample, turn): an episode does not depend on how many processes
    share the batch. sentences_per_position: so many samples in a row share their first position and
    differ in what they say there.
    """
    # A copy for every sample: the walk tells its states apart by their exchange alone.
    copies = [replace(exchange) for exchange in exchanges for _ in range(num_samples)]
    places = {id(c): (first_row + i // num_samples, i % num_samples) for i, c in enumerate(copies)}
    recorder = _Recorder(agent, step, places, sentences_per_position)
    rewrites = rewrite_by_edits(
        recorder, copies, seed=seed, span_length=span_length, max_edits=max_edits
    )
    return [Episode(tuple(recorder.turns[id(rewrite.exchange)]), rewrite) for rewrite in rewrites]


@dataclass(frozen=True, slots=True)
class _Recorder:
    """An EditPolicy that lets an agent act and keeps what it did, by the identity of an exchange.

    places: the row and the sample of each exchange, from which its seeds follow.
    sharing: how many samples in a row share their first position.
    """

    agent: Agent
    step: int
    places: Mapping[int, tuple[int, int]]
    sharing: int = 1
    turns: dict[int, list[Turn]] = field(default_factory=lambda: defaultdict(list))

    def propose(self, states: Sequence[EditState], *, seed: int) -> list[Edit]:
        places = [(*self.places[id(state.exchange)], state.turn) for state in states]
        seeds = [derive_seed(seed, "rollout", self.step, *place) for place in places]
        position_seeds = None
        if self.sharing > 1:
            # Later positions are a sample's own: they follow on what it has said.
            position_seeds = [
                own if turn else derive_seed(seed, "shared", self.step, row, sample // self.sharing)
                for own, (row, sample, turn) in zip(seeds, places, strict=True)
            ]
        actions, log_probs = self.agent.sample(states, seeds, position_seeds)
        rows = zip(states, actions, joint(log_probs), log_probs.entropy_B.tolist(), strict=True)
        turns = [Turn(*row) for row in rows]
        for turn in turns:
            self.turns[id(turn.state.exchange)].append(turn)
        return [turn.edit for turn in turns]


def joint(log_probs: LogProbs) -> list[Tensor]:
    """B times [T]: the log-probabilities of an action, its position as the first token."""
    return [
        torch.cat([position[None], tokens.to(position)])
        for position, tokens in zip(log_probs.position_B, log_probs.tokens, strict=True)
    ]


def padded(rows: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Rows of different length → [B, T] padded with 0, and the mask of what is no padding."""
    mask_BT = pad_sequence([torch.ones_like(row, dtype=torch.bool) for row in rows], True)
    return pad_sequence(list(rows), True), mask_BT


def reward_columns(episodes: Sequence[Episode], names: Sequence[str]) -> dict[str, list[Any]]:
    """What a reward is called with: the rewrites, their new sentences, the columns of the data.

    `sentence` is None where nothing is new; several new sentences stand in it one after another.
    A sentence that a later edit replaced is in none of them: it cannot be paid for any more.
    """
    return data_columns([episode.exchange for episode in episodes], names) | {
        "completions": [episode.rewrite.rewritten_response for episode in episodes],
        "sentence": [episode.rewrite.new_text for episode in episodes],
    }


@torch.no_grad()
def kl_figures(
    agent: Agent, episodes: Sequence[Episode], penalty: Penalty, batch_size: int
) -> list[dict[str, float]]:
    """k1, k3 and the penalty of each episode, summed over its positions and tokens."""
    turns = [turn for episode in episodes for turn in episode.turns]
    found: dict[int, list[float]] = {}
    for batch in in_batches(range(len(turns)), batch_size, lambda number: turns[number].size):
        chosen = [turns[number] for number in batch]
        reference = agent.log_probs(
            [turn.state for turn in chosen], [turn.action for turn in chosen], role="reference"
        )
        ref_BT, mask_BT = padded(joint(reference))
        log_prob_BT, _ = padded([turn.log_prob_T for turn in chosen])
        rows = (log_prob_BT, ref_BT, mask_BT)
        tables = (per_token(*rows, "k1"), per_token(*rows, "k3"), penalty(*rows))
        figures_B3 = torch.stack([table_BT.sum(dim=-1) for table_BT in tables], dim=-1)
        found |= dict(zip(batch, figures_B3.tolist(), strict=True))
    left = iter(found[number] for number in range(len(turns)))
    sums = [[sum(x) for x in zip(*(next(left) for _ in e.turns), strict=True)] for e in episodes]
    return [dict(zip(("k1", "k3", "penalty"), values, strict=True)) for values in sums]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reward of one episode, its terms, and what the agent did."""

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
    return [
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
        for number, episode in enumerate(episodes)
    ]


def summary(outcomes: Sequence[Outcome], num_samples: int = 1) -> dict[str, float]:
    """The figures of a step. A figure that nothing is known of is left out.

    outcomes: of all processes, the `num_samples` of an exchange beside each other.
    """
    rewards = [outcome.reward for outcome in outcomes]
    groups = [rewards[i : i + num_samples] for i in range(0, len(rewards), num_samples)]
    operations = [operation for outcome in outcomes for operation in outcome.operations]
    sentences = [sentence for outcome in outcomes for sentence in outcome.sentences]
    row = figures.reward_figures(outcomes) | {
        f"share_{operation}": mean([float(found == operation) for found in operations])
        for operation in Operation
    }
    if num_samples > 1:
        row["reward_spread"] = mean([figures.deviation(group) for group in groups])
    row |= {
        "actions": mean([float(len(outcome.operations)) for outcome in outcomes]),
        "sentence_tokens": mean([float(n) for o in outcomes for n in o.num_tokens]),
        "sentence_words": mean([float(len(sentence.split())) for sentence in sentences]),
        "distinct_sentences": figures.distinct(sentences),
        "share_questions": mean([float(figures.is_question(sentence)) for sentence in sentences]),
        "share_opening": figures.share_of_opening(sentences),
        "position_entropy": mean([value for o in outcomes for value in o.entropies]),
        "token_entropy": mean([value for o in outcomes for value in o.surprisals]),
    }
    return figures.known(row)


def kl_summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The mean KL of an episode and what it cost."""
    columns = {"kl_k1": "k1", "kl_k3": "k3", "kl_penalty": "penalty"}
    return {
        name: math.fsum(getattr(outcome, field) for outcome in outcomes) / len(outcomes)
        for name, field in columns.items()
    }
