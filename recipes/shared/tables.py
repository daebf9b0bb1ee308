"""What the tables share: fields of their settings, how rows are shown, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewriting.errors import UserError
from rewriting.runtime.settings import setting


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Fields that several tables borrow."""

    data: str = setting("sample:test", "Exchanges: a file, a folder, sample[:split], or a hub id.")
    labelled_data: str = setting(
        "sample:test", "Labelled exchanges: a file, a folder, sample[:split], or a hub id."
    )
    split: str = setting(
        "all", "Use only the rows of this split by seeker: train, dev or test; all: every row."
    )
    limit: int = setting(0, "Maximum number of rows to use, starting from the first; 0: all.")
    language_model: str = setting(
        "smollm2-135m", "Language model that perplexity is measured with."
    )
    json: str = setting("", "Write the figures to this JSON file.")
    html: str = setting("", "Write the report to this HTML file.")
    samples: int = setting(
        40, "Number of exchanges that the report shows, spread evenly over the rows."
    )
    overwrite: bool = setting(False, "Replace existing files.")
    overwrite_json: bool = setting(False, "Replace an existing JSON file.")


def may_write(path: str, overwrite: bool) -> None:
    """Refuse a file that exists before any work is done."""
    if path and Path(path).exists() and not overwrite:
        raise UserError(f"{path} exists. Pass --overwrite to replace it.")


def percent(value: Any) -> str:
    """A figure for a table: one digit for a share, none for a count."""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=not number)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def cell(figures: dict[str, Any], name: str) -> str:
    """A figure with its interval."""
    bounds = figures["intervals"][name]
    if figures[name] is None:
        return "–"
    text = f"{figures[name]:.1f}"
    return text if bounds is None else f"{text} ({bounds[0]:.0f}–{bounds[1]:.0f})"
