"""From a row to an exchange: our own columns, EPITOME's, EmpatheticDialogues', ALOE's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rewriting.data.headers import (
    ALOE_COLUMNS,
    DIALOGUE_COLUMNS,
    EPITOME_COLUMNS,
    with_our_names,
)
from rewriting.data.rows import BadRow, OnBadRow, Row
from rewriting.errors import UserError
from rewriting.exchange import LEVELS, MECHANISMS, Exchange, Label
from rewriting.runtime.files.json_files import cut, parse_json, shown

APPRAISALS: Final = (
    "Pleasantness",
    "Anticipated Effort",
    "Attentional Activity",
    "Certainty",
    "Objective Experience",
    "Self-Other Agency",
    "Situational Control",
    "Advice",
    "Trope",
)
"""ALOE's nine labels (arXiv 2405.00948)."""


class RowError(ValueError):
    """Why a row is not an exchange. Becomes a BadRow, which adds the place."""


def exchanges_of(
    rows: Iterable[Row], on_bad_row: OnBadRow, columns: Mapping[str, str] | None = None
) -> Iterator[Exchange]:
    """Turn the rows of one file into exchanges, by the columns of its first row.

    columns: our names of columns → those of the file, where they are called otherwise.
    """
    rows = with_our_names(rows, columns or {})
    first = next(rows, None)
    if first is None:
        return
    names = set(first.cells)
    if names >= DIALOGUE_COLUMNS:
        yield from _dialogue_exchanges(_chain(first, rows), on_bad_row)
        return
    if names >= EPITOME_COLUMNS:
        convert = _epitome_converter(mechanism_of(first.file))
    elif names >= ALOE_COLUMNS:
        convert = _aloe_exchange
    else:
        convert = _plain_exchange
        _need_columns(first)
    for row in _chain(first, rows):
        try:
            yield convert(row)
        except RowError as error:
            on_bad_row(BadRow(row.file, row.line, str(error), row.cells))


def _chain(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _need_columns(first: Row) -> None:
    """A table without the columns is one mistake in its header, not one in every row."""
    missing = [name for name in ("seeker_post", "response_post") if name not in first.cells]
    if missing and not first.file.endswith((".json", ".jsonl")):
        raise UserError(
            f"{first.file} has no column {' and no column '.join(map(repr, missing))}. "
            f"Its columns are: {cut(', '.join(map(str, first.cells)))}. "
            "Rename the ones that are meant, or name them, where a command takes it, with "
            "--columns seeker_post=…,response_post=…."
        )


def mechanism_of(file: str) -> str:
    """Which mechanism an EPITOME file is about: its name says so, its columns do not."""
    name = Path(file).name.lower().replace("-", "_")
    for mechanism in MECHANISMS:
        if mechanism in name:
            return mechanism
    raise UserError(
        f"{file} has EPITOME's columns, but its name does not tell which mechanism its levels are "
        f"of. Put one of these into the name: {', '.join(MECHANISMS)}."
    )


def _post(cells: Mapping[str, Any], name: str) -> str:
    value = _text(cells, name)
    if not value.strip():
        raise RowError(f"{name} is blank")
    return value


def _text(cells: Mapping[str, Any], name: str) -> str:
    value = cells.get(name)
    if value is None:
        raise RowError(f"no {name}; what is there: {cut(', '.join(map(str, cells)))}")
    if not isinstance(value, str):
        raise RowError(f"{name} is {shown(value)}, not text")
    return value


def parse_level(value: Any, name: str) -> int:
    try:
        level = float(value)
    except (TypeError, ValueError):
        level = -1.0
    if level not in LEVELS:
        raise RowError(f"{name} is {shown(value)}; a level is 0, 1 or 2")
    return int(level)


def _plain_exchange(row: Row) -> Exchange:
    cells = dict(row.cells)
    seeker_post, response_post = _post(cells, "seeker_post"), _post(cells, "response_post")
    rationales = _json_cell(cells.pop("rationales", None)) or {}
    if not isinstance(rationales, Mapping):
        raise RowError("rationales must map each mechanism to a list of texts")
    unknown = [name for name in rationales if name not in MECHANISMS]
    if unknown:
        raise RowError(f"rationales of {unknown[0]!r}, which is none of {', '.join(MECHANISMS)}")
    labels = {}
    for mechanism in MECHANISMS:
        value = cells.pop(mechanism, None)
        if value not in (None, ""):
            found = tuple(_texts(rationales.get(mechanism), f"rationales of {mechanism}"))
            labels[mechanism] = Label(parse_level(value, mechanism), found)
    history = tuple(_texts(_json_cell(cells.pop("history", None)), "history"))
    identifier, seeker_id = cells.pop("id", None), cells.pop("seeker_id", None)
    del cells["seeker_post"], cells["response_post"]
    return Exchange(
        seeker_post,
        response_post,
        id=f"{Path(row.file).stem}:{row.line}" if identifier in (None, "") else str(identifier),
        seeker_id="" if seeker_id is None else str(seeker_id),
        history=history,
        labels=labels,
        extra=cells,
    )


def _json_cell(value: Any) -> Any:
    """A list or mapping, also where a table had to write it as a text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parse_json(value)
        except ValueError:
            return value
    return value


def _texts(value: Any, name: str) -> list[str]:
    if value is None or value == "":
        return []
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise RowError(f"{name} must be a list of texts, not {shown(value)}")
    return list(texts)


def _epitome_converter(mechanism: str) -> Any:
    def convert(row: Row) -> Exchange:
        cells = row.cells
        pieces = _texts(cells.get("rationales"), "rationales")
        rationales = (part.strip() for piece in pieces for part in piece.split("|"))
        label = Label(parse_level(cells.get("level"), "level"), tuple(filter(None, rationales)))
        return Exchange(
            _post(cells, "seeker_post"),
            _post(cells, "response_post"),
            id=f"{cells.get('sp_id')}:{cells.get('rp_id')}",
            seeker_id=str(cells.get("sp_id")),
            labels={mechanism: label},
        )

    return convert


def _aloe_exchange(row: Row) -> Exchange:
    """ALOE's record. Spans and alignments keep their offsets into full_text, and are checked."""
    cells = row.cells
    target, observer = _post(cells, "target_text"), _post(cells, "observer_text")
    written = cells.get("full_text") is not None
    full_text = (
        _text(cells, "full_text") if written else f"target:\n\n{target}\n\nobserver:\n\n{observer}"
    )
    spans = _list(cells.get("spans"), "spans")
    for span in spans:
        if not isinstance(span, list | tuple) or len(span) != 3:
            raise RowError(f"a span is [start, end, label], not {shown(span)}")
        _check_offsets(span[:2], full_text)
        if span[2] not in APPRAISALS:
            raise RowError(
                f"{shown(span[2])} is not one of ALOE's labels ({', '.join(APPRAISALS)})"
            )
    alignments = _list(cells.get("alignments"), "alignments")
    for pair in alignments:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise RowError(f"an alignment is two [start, end] pairs, not {shown(pair)}")
        for offsets in pair:
            _check_offsets(offsets, full_text)
    return Exchange(
        target,
        observer,
        id=str(cells.get("id") or f"{Path(row.file).stem}:{row.line}"),
        extra={"full_text": full_text, "spans": spans, "alignments": alignments},
    )


def _list(value: Any, name: str) -> list[Any]:
    if value is not None and not isinstance(value, list | tuple):
        raise RowError(f"{name} must be a list, not {shown(value)}")
    return list(value or [])


def _check_offsets(offsets: Any, text: str) -> None:
    if (
        not isinstance(offsets, list | tuple)
        or len(offsets) != 2
        or not all(isinstance(offset, int) for offset in offsets)
        or not 0 <= offsets[0] < offsets[1] <= len(text)
    ):
        raise RowError(
            f"{shown(offsets)} is no [start, end] inside full_text ({len(text)} characters)"
        )


def _dialogue_exchanges(rows: Iterable[Row], on_bad_row: OnBadRow) -> Iterator[Exchange]:
    """Every listener's turn answers the speaker's turn before it; earlier turns are history.

    Utterances count from 1 in each conversation: odd ones are the speaker's.
    """
    conversation: str | None = None
    turns: list[str] = []
    for row in rows:
        cells = row.cells
        try:
            number = _turn_number(cells.get("utterance_idx"))
            utterance = _post(cells, "utterance").replace("_comma_", ",").strip()
            situation = _text(cells, "prompt").replace("_comma_", ",")
        except RowError as error:
            on_bad_row(BadRow(row.file, row.line, str(error), cells))
            continue
        if cells.get("conv_id") != conversation:
            conversation, turns = cells.get("conv_id"), []
        if len(turns) != number - 1:
            reason = f"utterance {number} of {conversation} follows on {len(turns)} good ones"
            on_bad_row(BadRow(row.file, row.line, reason, cells))
            continue
        if number % 2 == 0:
            yield Exchange(
                turns[-1],
                utterance,
                id=f"{conversation}:{number}",
                seeker_id=str(conversation),
                history=tuple(turns[:-1]),
                extra={"emotion": cells.get("context"), "situation": situation},
            )
        turns.append(utterance)


def _turn_number(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise RowError(f"utterance_idx is {shown(value)}, not a number from 1 on") from error
