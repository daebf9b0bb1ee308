"""What an exchange and a rewrite are. Everything else in the toolkit passes these around."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rewriting.edits import Edit, standing_edits

MECHANISMS: Final = ("emotional_reactions", "interpretations", "explorations")
"""EPITOME's three ways in which a reply communicates empathy (arXiv 2009.08441)."""

LEVELS: Final = (0, 1, 2)
"""None, weak, strong."""


@dataclass(frozen=True, slots=True)
class Label:
    """How strongly a response shows one mechanism, and the parts of it that do."""

    level: int
    rationales: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A seeker's post and a peer's response to it.

    `history` holds earlier turns, oldest first. `seeker_id` names the seeker's post: several
    responses to one post share it, and splits never tear them apart. `labels` maps a mechanism to
    its Label. `extra` keeps every other column of the source (emotion, user, time, spans, …).
    """

    seeker_post: str
    response_post: str
    id: str = ""
    seeker_id: str = ""
    history: tuple[str, ...] = ()
    labels: Mapping[str, Label] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def empathy(self) -> int | None:
        """Total empathy, 0 to 6, or None unless all three mechanisms are labelled."""
        if any(mechanism not in self.labels for mechanism in MECHANISMS):
            return None
        return sum(self.labels[mechanism].level for mechanism in MECHANISMS)

    def row(self) -> dict[str, Any]:
        """The exchange as one flat JSON object: the shape that every file of ours has."""
        row: dict[str, Any] = {"id": self.id}
        if self.seeker_id:
            row["seeker_id"] = self.seeker_id
        row |= {"seeker_post": self.seeker_post, "response_post": self.response_post}
        if self.history:
            row["history"] = list(self.history)
        row |= {mechanism: label.level for mechanism, label in self.labels.items()}
        if self.labels:
            row["rationales"] = {m: list(label.rationales) for m, label in self.labels.items()}
        return row | dict(self.extra)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """An exchange, the edits in order, and the response they lead to.

    A policy that writes the whole response anew, rather than editing it sentence by sentence,
    leaves `edits` empty. `reasons`: why the safety gate gave the response back as it was, if it
    did; empty in everything that a policy wrote.
    """

    exchange: Exchange
    rewritten_response: str
    edits: tuple[Edit, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return self.rewritten_response != self.exchange.response_post

    @property
    def new_sentences(self) -> tuple[str, ...]:
        """The sentences of the edits that stand in the rewritten response, in its order.

        Where a span allows several edits, a later one may replace what an earlier one wrote.
        """
        return tuple(self.edits[number].sentence for number in standing_edits(self.edits))

    @property
    def new_text(self) -> str | None:
        """The new sentences one after another, None where nothing is new: the reward column
        `sentence`."""
        return " ".join(self.new_sentences) or None
