"""Reading a source once before the work: count its rows, find the bad ones, know it again.

A bad row is found before hours are spent, a progress bar knows its end, and a job that goes on
later can tell whether its input is still the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rewriting.data.headers import parse_columns
from rewriting.data.load import load_exchanges
from rewriting.data.rows import BadRow, raise_bad_row
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.files.disk import disk_errors


@dataclass(frozen=True, slots=True)
class Survey:
    """What a first pass over a source has found.

    digest: stands for its good rows in order, with every column of theirs: history is read by the
    safety gate, labels and other columns go into the output.
    """

    source: str
    limit: int | None
    num_rows: int
    num_bad_rows: int
    digest: str
    columns: Mapping[str, str] = field(default_factory=dict)

    def exchanges(self) -> Iterator[Exchange]:
        """Read the good rows a second time, one after the other."""
        return load_exchanges(
            self.source, on_bad_row=lambda bad: None, limit=self.limit, columns=self.columns
        )


def survey(
    source: str,
    *,
    limit: int | None = None,
    skip_bad_rows: bool = False,
    set_aside: Path | None = None,
    columns: str = "",
) -> Survey:
    """Read a source to its end. Bad rows stop it, or are skipped and written to `set_aside`."""
    digest = hashlib.blake2b(digest_size=12)
    num_rows, names = 0, parse_columns(columns)
    with _BadRows(set_aside) as bad_rows:
        on_bad_row = bad_rows.add if skip_bad_rows else raise_bad_row
        for exchange in load_exchanges(source, on_bad_row=on_bad_row, limit=limit, columns=names):
            num_rows += 1
            row = json.dumps(exchange.row(), sort_keys=True, default=str)
            digest.update(f"{len(row)}:{row}".encode())
    if not num_rows:
        reason = f": all {bad_rows.count} rows are bad" if bad_rows.count else ""
        raise UserError(f"{source} holds no exchange{reason}.")
    return Survey(source, limit, num_rows, bad_rows.count, digest.hexdigest(), names)


def bad_file(output: Path) -> Path:
    """Where the bad rows of a job's input go: beside its output."""
    return output.with_name(f"{output.stem}.bad.jsonl")


class _BadRows:
    """Counts bad rows and writes them to a file, which is made at the first one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.count = 0
        self._file: IO[str] | None = None

    def add(self, bad: BadRow) -> None:
        self.count += 1
        if self.path is None:
            return
        with disk_errors(self.path):
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("w", encoding="utf-8", errors="backslashreplace")
            row = {"file": bad.file, "line": bad.line, "reason": bad.reason}
            row["content"] = bad.content
            self._file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")

    def __enter__(self) -> _BadRows:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
