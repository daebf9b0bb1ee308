"""Rows of a file with their line numbers, one at a time, whatever the file type.

Every reader is a generator that holds one row in memory (JSON: one chunk, Parquet: one batch).
What cannot be read as a row (a broken line of JSON, a CSV row with too many cells) is handed over
as a BadRow; what makes the whole file unreadable (its encoding, its header) is a UserError.
"""

from __future__ import annotations

import codecs
import csv
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewriting.errors import UserError

csv.field_size_limit(2**31 - 1)
CHUNK = 1 << 16
LONGEST_OBJECT = 1 << 20
PARTNER_COLUMNS = ["seeker_post", "response_post"]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is not an exchange: where it is, why, and what stood there."""

    file: str
    line: int
    reason: str
    content: Any = None

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


OnBadRow = Callable[[BadRow], None]


def raise_bad_row(bad: BadRow) -> None:
    """What happens to a bad row unless the user asked to skip them."""
    raise UserError(f"{bad}. Mend the row, or pass --skip-bad-rows to set such rows aside.")


def stop_at_bad_row(bad: BadRow) -> None:
    """The same where a command has no such option."""
    raise UserError(f"{bad}. Mend the row, or take it out.")


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one row. `line` is where it starts; in Parquet and hub data, its number."""

    file: str
    line: int
    cells: dict[str, Any]


def read_rows(path: Path, on_bad_row: OnBadRow) -> Iterator[Row]:
    """The rows of a file, read by its ending."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        endings = ", ".join(READERS)
        raise UserError(f"{path}: cannot read a file with this ending. Known endings: {endings}.")
    if not path.is_file():
        raise UserError(f"{path}: there is no such file.")
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty: it needs at least one row.")
    return reader(path, on_bad_row)


def _encoding_error(path: Path, line: int, byte: int) -> UserError:
    return UserError(
        f"{path}, line {line}: not UTF-8 (byte 0x{byte:02x}). "
        "Save the file as UTF-8, for instance with iconv."
    )


def _lines(path: Path) -> Iterator[str]:
    """Lines decoded one by one, so that a wrong byte is named by its line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise _encoding_error(path, number, line[error.start]) from error


def _chunks(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    line = 1
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            try:
                text = decoder.decode(data)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                raise _encoding_error(path, line, error.object[error.start]) from error
            line += text.count("\n")
            yield text


def _read_jsonl(path: Path, on_bad_row: OnBadRow) -> Iterator[Row]:
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            cells = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = f"not valid JSON ({error})"
            on_bad_row(BadRow(str(path), number, reason, line.rstrip("\n")))
            continue
        yield from _objects(path, number, cells, on_bad_row)


def _read_json(path: Path, on_bad_row: OnBadRow) -> Iterator[Row]:
    """A JSON list of objects, decoded one object at a time from a sliding buffer."""
    chunks = _chunks(path)
    decoder = json.JSONDecoder()
    buffer, at, line, opened = "", 0, 1, False
    while True:
        while at < len(buffer) and buffer[at] in (" \t\r\n," if opened else " \t\r\n"):
            line += buffer[at] == "\n"
            at += 1
        try:
            if at == len(buffer):
                raise json.JSONDecodeError("the list does not end", buffer, at)
            if not opened:
                if buffer[at] != "[":
                    raise UserError(f"{path}: a JSON list of objects is needed (or use .jsonl).")
                opened, at = True, at + 1
                continue
            if buffer[at] == "]":
                if any(rest.strip() for rest in (buffer[at + 1 :], *chunks)):
                    raise UserError(f"{path}, line {line}: there is more text after the list.")
                return
            cells, end = decoder.raw_decode(buffer, at)
        except json.JSONDecodeError as error:
            # Incomplete so far, or broken for good? One object is not a megabyte long.
            chunk = next(chunks, None) if len(buffer) - at < LONGEST_OBJECT else None
            if chunk is None:
                raise UserError(f"{path}, line {line}: not valid JSON ({error.msg}).") from error
            buffer, at = buffer[at:] + chunk, 0
            continue
        yield from _objects(path, line, cells, on_bad_row)
        line += buffer.count("\n", at, end)
        at = end


def _objects(path: Path, line: int, cells: Any, on_bad_row: OnBadRow) -> Iterator[Row]:
    if isinstance(cells, dict):
        yield Row(str(path), line, cells)
    else:
        reason = f"a JSON object is needed, not {type(cells).__name__}"
        on_bad_row(BadRow(str(path), line, reason, cells))


def _read_csv(path: Path, on_bad_row: OnBadRow) -> Iterator[Row]:
    lines = _lines(path)
    head = next(lines)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    names = {name.strip() for name in head.split(delimiter)}
    headless = delimiter == "\t" and len(names) == 2 and not names & set(PARTNER_COLUMNS)
    # EmpatheticDialogues writes commas as _comma_ and leaves quotation marks unpaired; PARTNER's
    # TSV has no header and plain text.
    plain = headless or head.startswith("conv_id,utterance_idx")

    def table() -> Iterator[str]:
        yield head
        yield from lines

    reader = csv.reader(
        table(),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if plain else csv.QUOTE_MINIMAL,
        strict=True,
    )
    columns = PARTNER_COLUMNS if headless else []
    while True:
        start = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            lost = reader.line_num - start
            reason = f"not valid CSV ({error})" + (f"; {lost} lines after it are lost" * (lost > 0))
            on_bad_row(BadRow(str(path), start, reason))
            continue
        if not columns:
            columns = [cell.strip() for cell in cells]
            continue
        if len(cells) == len(columns):
            yield Row(str(path), start, dict(zip(columns, cells, strict=True)))
        elif cells:
            reason = f"{len(cells)} cells where the header has {len(columns)}"
            on_bad_row(BadRow(str(path), start, reason, cells))


def _read_parquet(path: Path, on_bad_row: OnBadRow) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise UserError(f"{path}: not a readable Parquet file ({error}).") from error
    number = 0
    try:
        for batch in file.iter_batches(batch_size=1024):
            for cells in batch.to_pylist():
                number += 1
                yield Row(str(path), number, cells)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}, after row {number}: cannot be read on ({error}).") from error


READERS: dict[str, Callable[[Path, OnBadRow], Iterator[Row]]] = {
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}


def read_hub(name: str, split: str) -> Iterator[Row]:
    """The rows of a data set on the hub, streamed."""
    from datasets import load_dataset

    for library in ("huggingface_hub", "datasets"):  # their retries would drown the one line below
        logging.getLogger(library).setLevel(logging.ERROR)
    try:
        rows = load_dataset(name, split=split, streaming=True)
    except Exception as error:  # every way a hub can fail ends in the same advice
        raise UserError(
            f"{name!r} is neither a file nor a folder here, and as a hub data set it could not be "
            f"read ({type(error).__name__}). Check the spelling, or the network."
        ) from error
    for number, cells in enumerate(rows, start=1):
        yield Row(name, number, dict(cells))
