"""Long jobs that write one JSON line per row, can be stopped anywhere, and go on where they were.

While a job runs, its lines are in `NAME.partial` and its settings in `NAME.job`. The result
appears under its own name when it is complete; if asked to, it then replaces an older one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rewriting.errors import UserError
from rewriting.runtime.files import disk_errors, fsync_folder, write_json


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
        from filelock import FileLock, Timeout

        with disk_errors(self.output):
            self.output.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(self.output.with_name(f".{self.output.name}.lock"))
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise UserError(f"another process is writing {self.output}.") from error
        try:
            self._begin()
        except BaseException:
            self._unlock()
            raise
        return self

    def _begin(self) -> None:
        if self.output.is_dir():
            raise UserError(f"{self.output} is a folder; name a file.")
        if self.output.exists() and not self.overwrite:
            raise UserError(f"{self.output} exists. Pass --overwrite to replace it.")
        if self.partial.exists() and self.partial.stat().st_size and self._same_settings():
            self.rows_done = self._truncate()
        else:
            self.partial.unlink(missing_ok=True)
            write_json(self.job, self.settings)
        with disk_errors(self.partial):
            self._file = self.partial.open("a", encoding="utf-8")

    def _same_settings(self) -> bool:
        before = json.loads(self.job.read_text(encoding="utf-8")) if self.job.exists() else {}
        if before == self.settings:
            return True
        if self.overwrite:
            return False
        changed = sorted(
            name
            for name in before.keys() | self.settings.keys()
            if before.get(name) != self.settings.get(name)
        )
        raise UserError(
            f"{self.partial} is from an unfinished run with other settings ({', '.join(changed)}). "
            "Repeat that command to finish it, or pass --overwrite to start afresh."
        )

    def _truncate(self) -> int:
        """Cut the partial file after its last whole chunk of lines; how many lines that leaves."""
        ends = [0]
        with self.partial.open("rb+") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                ends.append(ends[-1] + len(line))
            lines = (len(ends) - 1) // self.chunk * self.chunk
            file.truncate(ends[lines])
        return lines

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows; they are on the disk when this returns."""
        with disk_errors(self.partial):
            for row in rows:
                # Columns of a table may hold dates and the like, which JSON has no form for.
                self._file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Publish the result if all went well; otherwise leave the partial file to go on from."""
        self._file.close()
        if kind is None:
            self.partial.replace(self.output)
            fsync_folder(self.output.parent)
            self.job.unlink(missing_ok=True)
        elif not self.partial.stat().st_size:  # failed before its first row: nothing to keep
            self.partial.unlink()
            self.job.unlink(missing_ok=True)
        self._unlock()

    def _unlock(self) -> None:
        self._lock.release()
        Path(self._lock.lock_file).unlink(missing_ok=True)
