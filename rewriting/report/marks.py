"""A response in pieces: which sentences are new, and which words carry which mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from rewriting.show import new_sentences

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive characters that share their marks. mechanisms: those of which it is rationale."""

    text: str
    is_new: bool = False
    mechanisms: tuple[str, ...] = ()


def pieces(
    text: str, *, original: str | None = None, rationales: Mapping[str, Sequence[str]]
) -> list[list[Piece]]:
    """A text as runs of pieces, a run being new sentences or old ones.

    original: what the text is a rewrite of; None marks nothing as new. The pieces together give
    back the text.
    """
    new = [] if original is None else new_spans(original, text)
    carried = {name: rationale_spans(text, found) for name, found in rationales.items()}
    all_spans = [*new, *(span for spans in carried.values() for span in spans)]
    cuts = sorted({0, len(text), *(cut for span in all_spans for cut in span)})
    found = [
        Piece(
            text[start:end],
            _inside(start, new),
            tuple(name for name, spans in carried.items() if _inside(start, spans)),
        )
        for start, end in pairwise(cuts)
    ]
    return [list(run) for _, run in groupby(found, key=lambda piece: piece.is_new)]


def new_spans(original: str, text: str) -> list[Span]:
    """Where the sentences stand that the original does not have, without the space around them.

    Neighbours are joined, so that a highlight runs through.
    """
    spans: list[Span] = []
    start, after_new = 0, False
    for piece, is_new in new_sentences(original, text):
        if is_new:
            first = spans.pop()[0] if after_new else start
            spans.append((first, start + len(piece.rstrip())))
        start, after_new = start + len(piece), is_new
    return spans


def rationale_spans(text: str, rationales: Sequence[str]) -> list[Span]:
    """Where rationales stand, which are parts of the text word for word; one that comes twice is
    looked for a second time. What is not there is left out."""
    spans: list[Span] = []
    for rationale in filter(None, rationales):
        taken = [end for start, end in spans if text[start:end] == rationale]
        start = text.find(rationale, max(taken, default=0))
        if start >= 0:
            spans.append((start, start + len(rationale)))
    return spans


def _inside(place: int, spans: Sequence[Span]) -> bool:
    return any(start <= place < end for start, end in spans)
