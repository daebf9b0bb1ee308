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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewriting.data.headers import delimiter_of, plain
from rewriting.errors import UserError
from rewriting.runtime.files.json_files import problem_of, shown

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
    """Stop at a bad row, in a command that takes --skip-bad-rows."""
    raise UserError(f"{bad}. Mend the row, or pass --skip-bad-rows to set such rows aside.")


def stop_at_bad_row(bad: BadRow) -> None:
    """Stop at a bad row, in a command without --skip-bad-rows."""
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
    return sound_rows(reader(path, on_bad_row), on_bad_row)


def sound_rows(rows: Iterable[Row], on_bad_row: OnBadRow) -> Iterator[Row]:
    """The rows without those whose values cannot be passed on: nobody after this has to ask."""
    for row in rows:
        problems = ((name, problem_of([name, value])) for name, value in row.cells.items())
        for name, problem in problems:
            if problem:
                content = None if "nested" in problem else row.cells  # too deep to be written again
                on_bad_row(BadRow(row.file, row.line, f"{shown(name)} {problem}", content))
                break
        else:
            yield row


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
            on_bad_row(BadRow(str(path), number, _not_json(error), line.rstrip("\n")))
            continue
        yield from _objects(path, number, cells, on_bad_row)


def _not_json(error: Exception) -> str:
    deep = isinstance(error, RecursionError)
    return f"not valid JSON ({'nested too deep' if deep else error})"


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
                raise UserError(
                    f"{path}, line {line}: not valid JSON ({error.msg}). Mend the file."
                ) from error
            buffer, at = buffer[at:] + chunk, 0
            continue
        except (ValueError, RecursionError) as error:  # where this object ends cannot be known
            raise UserError(
                f"{path}, line {line}: {_not_json(error)}. Mend it, or save the rows as .jsonl, "
                "where such a row can be skipped."
            ) from error
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
    head, above = next(lines), 0
    if head.lower().startswith("sep=") and len(head.strip()) == 5:  # Excel's note to itself
        delimiter, head, above = head[4], next(lines, ""), 1
    else:
        delimiter = delimiter_of(head, path.suffix.lower())
    names = {plain(name) for name in head.split(delimiter)}
    tsv = path.suffix.lower() == ".tsv" and delimiter == "\t"
    headless = tsv and len(names) == 2 and not names & set(PARTNER_COLUMNS)
    # EmpatheticDialogues writes commas as _comma_ and leaves quotation marks unpaired; PARTNER's
    # TSV has no header and plain text.
    unquoted = headless or head.startswith("conv_id,utterance_idx")

    def table() -> Iterator[str]:
        yield head
        yield from lines

    reader = csv.reader(
        table(),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if unquoted else csv.QUOTE_MINIMAL,
        strict=True,
    )
    columns = PARTNER_COLUMNS if headless else []
    while True:
        start = reader.line_num + 1 + above
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            lost = reader.line_num + above - start
            reason = f"not valid CSV ({error})" + (f"; {lost} lines after it are lost" * (lost > 0))
            if not columns:
                raise UserError(f"{path}: its header is {reason}. Mend line 1.") from error
            on_bad_row(BadRow(str(path), start, reason))
            continue
        if not columns:
            columns = [cell.strip() for cell in cells]
            _refuse_doubled(path, columns)
            continue
        if len(cells) == len(columns):
            yield Row(str(path), start, dict(zip(columns, cells, strict=True)))
        elif cells:
            reason = f"{len(cells)} cells where the header has {len(columns)}"
            on_bad_row(BadRow(str(path), start, reason, cells))


def _read_excel(path: Path, on_bad_row: OnBadRow) -> Iterator[Row]:
    from rewriting.data.excel import sheet_rows

    rows = sheet_rows(path)
    columns = [str("" if name is None else name).strip() for name in next(rows, ())]
    _refuse_doubled(path, columns)
    for number, cells in enumerate(rows, start=2):
        named = {name: cell for name, cell in zip(columns, cells, strict=False) if name}
        if any(cell != "" for cell in named.values()):
            yield Row(str(path), number, named)


def _refuse_doubled(path: Path, columns: Sequence[str]) -> None:
    """Of two columns of one name, one would be lost without a word."""
    doubled = [name for name, count in Counter(columns).items() if name and count > 1]
    if doubled:
        raise UserError(f"{path} has the column {shown(doubled[0])} twice. Rename one of them.")


def _read_parquet(path: Path, on_bad_row: OnBadRow) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        file = pq.ParquetFile(path)
        _refuse_doubled(path, file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=1024):
            for cells in _parquet_rows(batch):
                number += 1
                if isinstance(cells, dict):
                    yield Row(str(path), number, cells)
                else:
                    on_bad_row(BadRow(str(path), number, f"cannot be read ({_first_line(cells)})"))
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        where = f"{path}, after row {number}" if number else str(path)
        raise UserError(
            f"{where}: not a readable Parquet file ({_first_line(error)}). Write it again."
        ) from error


def _parquet_rows(batch: Any) -> Iterator[dict[str, Any] | Exception]:
    """The rows of a batch; where one cannot become Python values, why not."""
    try:
        yield from batch.to_pylist()
        return
    except (ValueError, OverflowError):  # a text that is not UTF-8, a date beyond the calendar
        pass
    for place in range(batch.num_rows):
        try:
            yield from batch.slice(place, 1).to_pylist()
        except (ValueError, OverflowError) as error:
            yield error


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


READERS: dict[str, Callable[[Path, OnBadRow], Iterator[Row]]] = {
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".xlsx": _read_excel,
}


def read_hub(name: str, split: str, on_bad_row: OnBadRow) -> Iterator[Row]:
    """The rows of a data set on the hub, streamed."""
    return sound_rows(_hub_rows(name, split), on_bad_row)


def _hub_rows(name: str, split: str) -> Iterator[Row]:
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
