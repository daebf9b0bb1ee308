"""What an edit policy does in a state: a position, and the tokens of a sentence there.

An `Agent` is what the training loops need of a policy: samples, and the log-probabilities of what
was sampled under the very distribution it was sampled from. A toy of a few numbers is one as well
as a language model (agent.py).

Legend: B actions, T_i tokens of action i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from rewriting.edits import Edit
from rewriting.loop import EditState


@dataclass(frozen=True, slots=True)
class Action:
    """One edit as a policy samples it."""

    position: int
    """The place among the 2n + 2 of the state's span (rewriting/edits.py gives the order)."""
    tokens: tuple[int, ...] = ()
    """Of the sentence, the token that ends it included; none for keep."""
    sentence: str = ""
    """The tokens as text, stripped; blank for keep, or where the tokens say nothing."""

    def edit(self, num_sentences: int) -> Edit:
        """The edit of a span of that many sentences. A blank sentence changes nothing: a keep."""
        if not self.sentence.strip():
            return Edit.keep()
        return Edit.at(self.position, num_sentences, self.sentence)


@dataclass(frozen=True, slots=True)
class LogProbs:
    """Log-probabilities of B actions, float32. Their sum is that of the joint action."""

    position_B: Tensor
    """log π(position | state)."""
    tokens: list[Tensor]
    """B times [T_i]: log π(token | state, position, the tokens before); [0] for keep."""
    entropy_B: Tensor
    """Of the distribution over positions, in nats."""


class Agent(Protocol):
    """A policy that can be trained: it samples, and says how likely its samples were."""

    module: nn.Module
    """Holds exactly the parameters that are trained (those with requires_grad)."""

    def sample(
        self,
        states: Sequence[EditState],
        seeds: Sequence[int],
        position_seeds: Sequence[int] | None = None,
    ) -> tuple[list[Action], LogProbs]:
        """One action per state, and its log-probabilities, detached.

        Row i depends on states[i] and seeds[i] alone. position_seeds: what the positions are drawn
        by instead, so that rows of the same state can share one.
        """
        ...

    def log_probs(
        self, states: Sequence[EditState], actions: Sequence[Action], *, role: str = "policy"
    ) -> LogProbs:
        """The same log-probabilities from a teacher-forced pass, differentiable.

        role: "policy", or "reference", what the policy was before its training began.
        """
        ...
