"""Pairs of a target's and an observer's span, to learn from which of them meet.

A grid is what two texts give: every span of the one with every span of the other. Negatives are the
pairs of an exchange that annotators left alone, and whole replies moved to somebody else's post,
until there are so many to one positive (ALOE takes 11, arXiv 2405.00948). Moved replies are the
case that matters for a reward: kind words in the wrong place.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from rewards.appraisals.units import group_of
from rewriting.data.appraisals import APPRAISALS, AppraisedExchange, Role, sentence_bounds
from rewriting.errors import UserError

Labels = tuple[float, ...]
"""How far a span makes each of the nine appraisals: 1 and 0 where people said so."""


@dataclass(frozen=True, slots=True)
class Side:
    """One text of a grid: its spans, their labels, and all its sentences for what it is about."""

    spans: tuple[str, ...]
    labels: tuple[Labels, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Two sides; which pairs of (target span, observer span) are aligned; whose post it is."""

    target: Side
    observer: Side
    aligned: frozenset[tuple[int, int]]
    group: str
    moved: bool = False

    @property
    def size(self) -> int:
        return len(self.target.spans) * len(self.observer.spans)

    def gold(self) -> list[bool]:
        """Aligned or not, row by row of the target's spans."""
        return [
            (i, j) in self.aligned
            for i in range(len(self.target.spans))
            for j in range(len(self.observer.spans))
        ]

    def advice(self) -> list[bool]:
        """Whether the observer's span of each pair is advice more than anything else."""
        advice = APPRAISALS.index("Advice")
        kinds = [max(row) > 0 and row[advice] == max(row) for row in self.observer.labels]
        return kinds * len(self.target.spans)


def side_of(exchange: AppraisedExchange, role: Role) -> Side:
    spans = exchange.spans(role)
    text = exchange.text(role)
    return Side(
        tuple(text[span.start : span.end] for span in spans),
        tuple(tuple(float(span.label == name) for name in APPRAISALS) for span in spans),
        tuple(text[start:end] for start, end in sentence_bounds(text)),
    )


def grids_of(exchanges: Sequence[AppraisedExchange]) -> list[Grid]:
    """The exchanges with spans on both sides, as grids."""
    return [
        Grid(
            side_of(exchange, "target"),
            side_of(exchange, "observer"),
            exchange.alignments,
            group_of(exchange),
        )
        for exchange in exchanges
        if exchange.target_spans and exchange.observer_spans
    ]


def moved_grids(grids: Sequence[Grid], *, negatives: int = 11, seed: int = 0) -> list[Grid]:
    """Replies at other seekers' posts, until there are `negatives` pairs to one that is aligned."""
    if len({grid.group for grid in grids}) < 2:
        raise UserError("replies can only be moved where there are two seekers at least.")
    positives = sum(len(grid.aligned) for grid in grids)
    missing = negatives * positives - sum(grid.size - len(grid.aligned) for grid in grids)
    generator = random.Random(seed)
    moved: list[Grid] = []
    while missing > 0:
        post, reply = generator.choice(grids), generator.choice(grids)
        if post.group != reply.group:
            moved.append(Grid(post.target, reply.observer, frozenset(), post.group, moved=True))
            missing -= moved[-1].size
    return moved
