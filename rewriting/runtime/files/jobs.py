"""Long jobs that write one JSON line per row, can be stopped anywhere, and go on where they were.

While a job runs, its lines are in `NAME.partial`. `NAME.job` holds its settings and then, for every
piece that was written, its number of lines and bytes and a checksum: what the disk or somebody else
has damaged is found when the job goes on, and done again. The result appears under its own name
when it is complete; if asked to, it then replaces an older one.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from rewriting.errors import UserError
from rewriting.runtime.files.disk import disk_errors, fsync_folder
from rewriting.runtime.files.folders import only_writer
from rewriting.runtime.files.json_files import LARGEST_SETTINGS, parse_json

logger = logging.getLogger(__name__)
Piece = tuple[int, int, str]  # lines, bytes, checksum


class LineJob:
    """A resumable file of JSON lines.

    chunk: rows are written this many at a time; a resumed job starts at a whole chunk, so that
    whatever is computed chunk by chunk comes out the same.
    """

    def __init__(
        self,
        output: Path,
        settings: Mapping[str, Any],
        *,
        chunk: int = 1,
        overwrite: bool = False,
    ) -> None:
        self.output = output
        self.partial = output.with_name(output.name + ".partial")
        self.job = output.with_name(output.name + ".job")
        self.settings = json.loads(json.dumps(dict(settings)))
        self.chunk = chunk
        self.overwrite = overwrite
        self.rows_done = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(only_writer(self.output))
            self._begin()
            self._lock = stack.pop_all()  # held until the end of the job
        return self

    def _begin(self) -> None:
        if self.output.is_dir():
            raise UserError(f"{self.output} is a folder; name a file.")
        if self.output.exists() and not self.overwrite:
            raise UserError(f"{self.output} exists. Pass --overwrite to replace it.")
        for path in (self.partial, self.job):
            if path.exists() and not path.is_file():
                raise UserError(f"{path} is no plain file. Remove it, or name another output.")
        with disk_errors(self.partial):
            kept: list[Piece] = []
            if self.partial.exists() and self.partial.stat().st_size and self._same_settings():
                kept = self._whole_pieces()
            self.rows_done = sum(lines for lines, _, _ in kept)
            self._start(kept)

    def _start(self, kept: Sequence[Piece]) -> None:
        """Begin the two files with what is kept of an earlier run, or with nothing."""
        replaced = self.job.with_name(f".{self.job.name}.tmp")
        with replaced.open("wb") as file:
            _append(file, _sealed(self.settings))
            for piece in kept:
                file.write(_record(piece))
        replaced.replace(self.job)
        if self.partial.exists():
            os.truncate(self.partial, sum(size for _, size, _ in kept))
        self._file = self.partial.open("ab")
        self._records = self.job.open("ab")

    def _same_settings(self) -> bool:
        before = self._settings_before()
        if before == self.settings:
            return True
        if self.overwrite:
            return False
        if before is None:
            raise UserError(
                f"{self.job} is damaged or missing, and it alone tells which settings "
                f"{self.partial} is from. Pass --overwrite to start afresh, or restore it."
            )
        changed = sorted(
            name
            for name in before.keys() | self.settings.keys()
            if before.get(name) != self.settings.get(name)
        )
        raise UserError(
            f"{self.partial} is from an unfinished run with other settings ({', '.join(changed)}). "
            "Repeat that command to finish it, or pass --overwrite to start afresh."
        )

    def _settings_before(self) -> dict[str, Any] | None:
        """The settings of the unfinished run; None where they are not to be read as written."""
        try:
            with self.job.open("rb") as file:
                line = file.readline(LARGEST_SETTINGS)
            settings = parse_json(line.decode())["settings"]
            whole = isinstance(settings, dict) and _sealed(settings) == line
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return settings if whole else None

    def _whole_pieces(self) -> list[Piece]:
        """What was written up to the first damage, and ends with a whole chunk."""
        whole: list[Piece] = []
        with self.partial.open("rb") as file:
            left = self.partial.stat().st_size
            for piece in self._recorded():
                if piece[1] > left or _piece(file.read(piece[1])) != piece:
                    done = sum(lines for lines, _, _ in whole)
                    logger.warning(
                        "%s is damaged after row %d: doing the rest again", self.partial, done
                    )
                    break
                whole.append(piece)
                left -= piece[1]
        while sum(lines for lines, _, _ in whole) % self.chunk:
            whole.pop()
        return whole

    def _recorded(self) -> Iterator[Piece]:
        """What was recorded of each write, up to the first record that cannot be read."""
        with self.job.open("rb") as file:
            next(file)  # the settings
            for line in file:
                try:
                    lines, size, checksum = parse_json(line.decode())
                except (ValueError, TypeError):
                    return
                if not (isinstance(size, int) and size > 0):
                    return
                yield lines, size, checksum

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows; they are on the disk when this returns."""
        # Columns of a table may hold dates and the like, which JSON has no form for.
        lines = [json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows]
        content = "".join(lines).encode()
        if not content:
            return
        with disk_errors(self.partial):
            _append(self._file, content)
            _append(self._records, _record(_piece(content)))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Publish the result if all went well; otherwise leave the partial file to go on from."""
        self._file.close()
        self._records.close()
        try:
            with disk_errors(self.output):
                if kind is None:
                    self.partial.replace(self.output)
                    fsync_folder(self.output.parent)
                    self.job.unlink(missing_ok=True)
                elif not self.partial.stat().st_size:  # failed before its first row
                    self.partial.unlink()
                    self.job.unlink(missing_ok=True)
        finally:
            self._lock.close()


def _append(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _sealed(settings: Mapping[str, Any]) -> bytes:
    """The first line of a job file: settings, and a checksum of them."""
    checksum = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return json.dumps({"settings": settings, "checksum": checksum}).encode() + b"\n"


def _piece(content: bytes) -> Piece:
    return content.count(b"\n"), len(content), hashlib.sha256(content).hexdigest()


def _record(piece: Piece) -> bytes:
    return json.dumps(piece).encode() + b"\n"
