"""The units that appraisals are learnt from and measured on: sentences, or marked parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rewriting.data.appraisals import (
    APPRAISALS,
    NO_APPRAISAL,
    ROLES,
    AppraisedExchange,
    Role,
    Span,
    sentence_bounds,
)

LABELS: Final = (*APPRAISALS, NO_APPRAISAL)
"""What a unit can be called: the nine appraisals, and none."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Words, who says them, and what they appraise; `group` is the seeker, for resampling."""

    text: str
    role: Role
    label: str
    group: str = ""


def units_of(exchanges: Iterable[AppraisedExchange]) -> list[Unit]:
    """Every marked span, cut at the ends of sentences, and every sentence without one.

    A sentence with two appraisals has no single answer; its parts have. A post with several
    replies gives its units once.
    """
    return _different(
        Unit(exchange.text(role)[start:end], role, label, group_of(exchange))
        for exchange in exchanges
        for role in ROLES
        for bounds in sentence_bounds(exchange.text(role))
        for start, end, label in _parts(bounds, exchange.spans(role))
    )


def sentences_of(exchanges: Iterable[AppraisedExchange]) -> list[Unit]:
    """Whole sentences, as they come at use: each with the label that most of its letters have."""
    return _different(
        Unit(exchange.text(role)[start:end], role, label, group_of(exchange))
        for exchange in exchanges
        for role in ROLES
        for start, end in sentence_bounds(exchange.text(role))
        for label in [_largest((start, end), exchange.spans(role))]
    )


def group_of(exchange: AppraisedExchange) -> str:
    return exchange.seeker_id or exchange.target_text


def _parts(bounds: tuple[int, int], spans: Sequence[Span]) -> list[tuple[int, int, str]]:
    start, end = bounds
    inside = [
        (max(start, span.start), min(end, span.end), span.label)
        for span in spans
        if span.start < end and span.end > start
    ]
    return inside or [(start, end, NO_APPRAISAL)]


def _largest(bounds: tuple[int, int], spans: Sequence[Span]) -> str:
    return max(_parts(bounds, spans), key=lambda part: part[1] - part[0])[2]


def _different(units: Iterable[Unit]) -> list[Unit]:
    return list(dict.fromkeys(units))
