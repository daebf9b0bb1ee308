"""Rollouts: what an agent did to a batch of exchanges, and how likely it was to do it.

An episode is one walk through one response (rewriting/loop.py): an action per span, or several
where a span allows more edits. Its reward is known at its end and belongs to all of its actions.

The choice of a position is treated as the first token of an action, so that policy gradient, KL and
clipping are written once, over the tokens of a row.

Legend: B actions, T tokens of an action with the position as the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from policies.editing.actions import Action, Agent, LogProbs
from rewriting.edits import Edit, Operation, standing_edits
from rewriting.exchange import Exchange, Rewrite
from rewriting.loop import EditState, rewrite_by_edits
from rewriting.runtime.seeds import derive_seed

GIVEN_COLUMNS: Final = frozenset(
    {
        "prompts",
        "completions",
        "completion_ids",
        "sentence",
        "trainer_state",
        "log_extra",
        "log_metric",
        "update",
    }
)
"""What a reward is called with besides the columns of the data, which therefore cannot be those."""


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
) -> list[Episode]:
    """`num_samples` episodes of each exchange: those of the first, those of the second, and so on.

    first_row: the place of the first exchange in the batch of all processes. Seeds follow from
    (seed, step, row in that batch, sample, turn): an episode does not depend on how many processes
    share the batch.
    """
    # A copy for every sample: the walk tells its states apart by their exchange alone.
    copies = [replace(exchange) for exchange in exchanges for _ in range(num_samples)]
    places = [(first_row + i // num_samples, i % num_samples) for i in range(len(copies))]
    recorder = _Recorder(agent, copies, places, step)
    rewrites = rewrite_by_edits(
        recorder, copies, seed=seed, span_length=span_length, max_edits=max_edits
    )
    return [
        Episode(tuple(turns), rewrite)
        for turns, rewrite in zip(recorder.turns, rewrites, strict=True)
    ]


class _Recorder:
    """An EditPolicy that lets an agent act and keeps what it did."""

    def __init__(
        self,
        agent: Agent,
        exchanges: Sequence[Exchange],
        places: Sequence[tuple[int, int]],
        step: int,
    ) -> None:
        self.agent = agent
        self.episode_of = {id(exchange): number for number, exchange in enumerate(exchanges)}
        self.places = places
        self.step = step
        self.turns: list[list[Turn]] = [[] for _ in exchanges]

    def propose(self, states: Sequence[EditState], *, seed: int) -> list[Edit]:
        actions, log_probs = self.agent.sample(states, [self._seed(seed, s) for s in states])
        entropies = log_probs.entropy_B.tolist()
        rows = zip(states, actions, joint(log_probs), entropies, strict=True)
        turns = [Turn(*row) for row in rows]
        for turn in turns:
            self.turns[self.episode_of[id(turn.state.exchange)]].append(turn)
        return [turn.edit for turn in turns]

    def _seed(self, seed: int, state: EditState) -> int:
        row, sample = self.places[self.episode_of[id(state.exchange)]]
        return derive_seed(seed, "rollout", self.step, row, sample, state.turn)


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


def column_names(exchanges: Sequence[Exchange]) -> list[str]:
    """The columns of the data that rewards are given: every one that any exchange has."""
    names = {name: None for exchange in exchanges for name in exchange.row()}  # in their order
    return [name for name in names if name not in GIVEN_COLUMNS]


def reward_columns(episodes: Sequence[Episode], names: Sequence[str]) -> dict[str, list[Any]]:
    """What a reward is called with: the rewrites, their new sentences, the columns of the data.

    `sentence` is None where nothing is new; several new sentences stand in it one after another.
    A sentence that a later edit replaced is in none of them: it cannot be paid for any more.
    """
    rows = [episode.exchange.row() for episode in episodes]
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in names}
    return columns | {
        "completions": [episode.rewrite.rewritten_response for episode in episodes],
        "sentence": [episode.rewrite.new_text for episode in episodes],
    }
