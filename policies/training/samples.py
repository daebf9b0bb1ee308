"""Samples of a training run, to be read by people: a table on the screen, lines in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewriting.runtime.files import disk_errors

Rows = Sequence[Mapping[str, Any]]
Columns = Mapping[str, Callable[[Mapping[str, Any]], Any]]
OnSamples = Callable[[str, Rows], None]
"""Called with a title and rows of samples.jsonl."""


class SampleFile:
    """samples.jsonl. What a stopped run wrote after its last checkpoint is taken out again.

    A part of the checkpoint by the number of its lines.
    """

    def __init__(self, folder: Path, writes: bool) -> None:
        self.path = folder / "samples.jsonl"
        self.writes = writes
        self.num_lines = 0

    def add(self, rows: Rows) -> None:
        with disk_errors(self.path):
            self._write([json.dumps(row, ensure_ascii=False) + "\n" for row in rows])
        self.num_lines += len(rows)

    def _write(self, lines: Sequence[str]) -> None:
        if self.writes and lines:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a" if self.num_lines else "w", encoding="utf-8") as file:
                file.writelines(lines)

    def state_dict(self) -> dict[str, int]:
        return {"num_lines": self.num_lines}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        lines = []
        if self.writes and self.path.is_file():
            with self.path.open(encoding="utf-8") as file:
                lines = file.readlines()[: state["num_lines"]]
        self.num_lines = 0
        self._write(lines)
        self.num_lines = state["num_lines"]


def print_samples(title: str, rows: Rows) -> None:
    """Samples as a table: the posts, the rewrite with what is new in green, the rewards."""
    from rich.text import Text

    from rewriting.show import new_sentences

    def marked(row: Mapping[str, Any]) -> Text:
        text = Text()
        for piece, is_new in new_sentences(row["response_post"], row["rewritten_response"]):
            text.append(piece, style="bold green" if is_new else "")
        return text

    _print(title, rows, {"response, what is new in green": marked})


def print_responses(title: str, rows: Rows) -> None:
    """Samples as a table: the seeker, the human's and the generator's response, the rewards."""
    from rich.text import Text

    human = {"human response": lambda row: Text(shortened(row["response_post"]), style="dim")}
    _print(
        title, rows, human | {"generated": lambda row: Text(shortened(row["rewritten_response"]))}
    )


def _print(
    title: str, rows: Rows, columns: Mapping[str, Callable[[Mapping[str, Any]], Any]]
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", show_lines=True)
    table.add_column("seeker", ratio=3, style="dim")
    for name in columns:
        table.add_column(name, ratio=5)
    table.add_column("rewards", no_wrap=True)
    for row in rows:
        values = {"total": row["reward"], **row["rewards"]}
        lines = [f"{name} {value:.3f}" for name, value in values.items() if value is not None]
        cells = [cell(row) for cell in columns.values()]
        table.add_row(Text(shortened(row["seeker_post"])), *cells, Text("\n".join(lines)))
    Console().print(table)


def shortened(text: str, length: int = 240) -> str:
    """A text in one line, cut at a word."""
    words = " ".join(text.split())
    return words if len(words) <= length else words[:length].rsplit(" ", 1)[0] + " …"
