"""Rewriting a response span by span and edit by edit, with any policy that proposes edits.

PARTNER (arXiv 2101.07714) lets its agent see the seeker post and a fixed-length contiguous span of
the response's sentences. A response longer than the span is walked through from left to right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rewriting.edits import Edit, Operation, apply_edit
from rewriting.exchange import Exchange, Rewrite
from rewriting.sentences import Sentences, split_sentences


@dataclass(frozen=True, slots=True)
class EditState:
    """What an edit policy sees: the seeker post and a span of the response's sentences."""

    exchange: Exchange
    span: tuple[str, ...]
    start: int = 0
    """The place of the span's first sentence in the response."""
    turn: int = 0
    """How many edits the exchange has been asked for before this one."""


class EditPolicy(Protocol):
    """Proposes one edit for each state, with positions counted inside the span."""

    def propose(self, states: Sequence[EditState], *, seed: int) -> list[Edit]: ...


class Policy(Protocol):
    """Anything that rewrites a batch of exchanges: what `rewriting rewrite --policy` takes.

    The same seed and exchange give the same rewrite, whatever else is in the batch.
    """

    name: str

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]: ...


def spans(num_sentences: int, span_length: int) -> list[range]:
    """Contiguous spans that cover a response; the last may be shorter. A blank response has one
    empty span."""
    if span_length < 1:
        raise ValueError(f"a span needs at least one sentence, not {span_length}")
    starts = range(0, max(num_sentences, 1), span_length)
    return [range(start, min(start + span_length, num_sentences)) for start in starts]


@dataclass(slots=True)
class _Walk:
    """Where the walk through one response stands."""

    exchange: Exchange
    sentences: Sentences
    spans: list[range]
    edits: list[Edit] = field(default_factory=list)
    edits_in_span: int = 0
    turn: int = 0

    def state(self) -> EditState:
        span = self.spans[0]
        texts = self.sentences.texts[span.start : span.stop]
        return EditState(self.exchange, texts, span.start, self.turn)

    def take(self, edit: Edit, max_edits: int) -> None:
        """Apply the policy's edit of the current span, and move on when the span is done."""
        span = self.spans[0]
        edit.index(len(span))  # raises where the span has no such position
        placed = edit.shifted(span.start)
        self.sentences = apply_edit(self.sentences, placed)
        self.turn += 1
        self.edits_in_span += 1
        if edit.operation is not Operation.KEEP:
            self.edits.append(placed)
        if edit.operation is Operation.INSERT:
            grown = range(span.start, span.stop + 1)
            self.spans = [grown, *(range(s.start + 1, s.stop + 1) for s in self.spans[1:])]
        if edit.operation is Operation.KEEP or self.edits_in_span >= max_edits:
            self.spans = self.spans[1:]
            self.edits_in_span = 0

    def rewrite(self) -> Rewrite:
        return Rewrite(self.exchange, str(self.sentences), tuple(self.edits))


def rewrite_by_edits(
    policy: EditPolicy,
    exchanges: Sequence[Exchange],
    *,
    seed: int,
    span_length: int = 4,
    max_edits: int = 1,
) -> list[Rewrite]:
    """Rewrite every exchange with an edit policy, all of them together, one edit a round.

    In each span the policy edits until it keeps, `max_edits` times at the most. An inserted
    sentence makes its span one longer and moves the later spans on by one.
    """
    if max_edits < 1:
        raise ValueError(f"a span allows at least one edit, not {max_edits}")
    walks = []
    for exchange in exchanges:
        sentences = split_sentences(exchange.response_post)
        walks.append(_Walk(exchange, sentences, spans(len(sentences), span_length)))
    while active := [walk for walk in walks if walk.spans]:
        edits = policy.propose([walk.state() for walk in active], seed=seed)
        if len(edits) != len(active):
            raise ValueError(f"the policy gave {len(edits)} edits for {len(active)} states")
        for walk, edit in zip(active, edits, strict=True):
            walk.take(edit, max_edits)
    return [walk.rewrite() for walk in walks]
