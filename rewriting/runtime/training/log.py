"""The log of a run: a JSON line per step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewriting.runtime.files.disk import disk_errors


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]], mode: str) -> None:
    """Rows as JSON lines: mode "w" for a new file, "a" to go on with one."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


class Log:
    """A JSON line per step. A part of the checkpoint, so that a resumed log has no step twice."""

    def __init__(self, folder: Path, writes: bool) -> None:
        self.path = folder / "log.jsonl"
        self.writes = writes
        self.rows: list[dict[str, float]] = []

    def add(self, row: dict[str, float]) -> None:
        self.rows.append(row)
        if self.writes:
            write_lines(self.path, [row], "a" if len(self.rows) > 1 else "w")

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.rows = list(state["rows"])
        if self.writes:
            write_lines(self.path, self.rows, "w")
