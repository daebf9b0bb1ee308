"""Supervision from edits that people wrote: `sample:rewrites_train` and files like it.

A row of such a file is a reply with its edits, in order (rewriting/sample/REWRITES.md). Every edit
is one thing to learn, in the state that the edits before it have led to; when the last one is made,
the policy learns to stop. A reply without edits is learnt to be left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from policies.editing.warm_start import Supervised
from rewriting.edits import Edit, Operation, apply_edit
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.loop import EditState, spans
from rewriting.sentences import split_sentences


def has_written_edits(exchange: Exchange) -> bool:
    """Whether somebody wrote down how the reply should be edited, if at all."""
    return "edits" in exchange.extra


def build_written(exchanges: Iterable[Exchange], *, span_length: int = 4) -> list[Supervised]:
    """One row for each written edit, and one for leaving alone what is good enough by then."""
    return [
        row
        for exchange in exchanges
        if has_written_edits(exchange)
        for row in _rows(exchange, span_length)
    ]


def _rows(exchange: Exchange, span_length: int) -> list[Supervised]:
    """The spans are cut once and grow with what is inserted, as in rewriting/loop.py."""
    sentences = split_sentences(exchange.response_post)
    places, number, rows = spans(len(sentences), span_length), 0, []
    for turn, edit in enumerate(written_edits(exchange)):
        assert edit.position is not None  # no keep among them
        number = span_of(edit.position, places)
        span = places[number]
        state = EditState(exchange, sentences.texts[span.start : span.stop], span.start, turn)
        position = edit.shifted(-span.start).index(len(span))
        rows.append(Supervised(state, position, edit.sentence, str(edit.operation)))
        sentences = apply_edit(sentences, edit)
        if edit.operation is Operation.INSERT:
            later = [range(s.start + 1, s.stop + 1) for s in places[number + 1 :]]
            places = [*places[:number], range(span.start, span.stop + 1), *later]
    span = places[number]
    texts = sentences.texts[span.start : span.stop]
    state = EditState(exchange, texts, span.start, len(rows))
    return [*rows, Supervised(state, 2 * len(span) + 1, "", "keep")]


def span_of(position: int, places: Sequence[range]) -> int:
    """The number of the span that an edit falls into; what is appended belongs to the last."""
    return next((n for n, span in enumerate(places) if position < span.stop), len(places) - 1)


def written_edits(exchange: Exchange) -> list[Edit]:
    """The edits of a row, checked: an error names the row and the edit that does not fit."""
    given = exchange.extra["edits"]
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise UserError(f"exchange {exchange.id!r}: `edits` must be a list, not {given!r}.")
    sentences, edits = split_sentences(exchange.response_post), []
    for number, row in enumerate(given, start=1):
        try:
            edit = _edit(row)
            sentences = apply_edit(sentences, edit)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise UserError(
                f"exchange {exchange.id!r}, edit {number}: needs operation (insert or replace), a "
                f"position inside the reply and a sentence ({error})."
            ) from error
        edits.append(edit)
    return edits


def _edit(row: Mapping[str, Any]) -> Edit:
    make = {Operation.INSERT: Edit.insert, Operation.REPLACE: Edit.replace}
    return make[Operation(row["operation"])](int(row["position"]), str(row["sentence"]))
