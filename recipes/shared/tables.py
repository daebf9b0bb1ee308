"""Tables on the screen, and results that are not replaced unasked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewriting.errors import UserError


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
