"""The first sheet of an Excel file, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from rewriting.errors import UserError


def sheet_rows(path: Path) -> Iterator[list[Any]]:
    """The rows of the first sheet from the first one on. A date is a text, an empty cell too."""
    try:
        from openpyxl import load_workbook
    except ModuleNotFoundError as error:
        raise UserError(
            f"{path}: reading Excel needs openpyxl: pip install 'empathic-rewriting[excel]' "
            "installs it. Or save the sheet as CSV."
        ) from error
    try:
        with closing(load_workbook(path, read_only=True, data_only=True)) as book:
            for cells in book.worksheets[0].iter_rows(values_only=True):
                yield [_plain(cell) for cell in cells]
    except UserError:
        raise
    except Exception as error:  # a damaged archive can fail anywhere in the library
        raise UserError(
            f"{path}: not a readable Excel file ({type(error).__name__}). Save the sheet as CSV."
        ) from error


def _plain(cell: Any) -> Any:
    if cell is None:
        return ""
    return cell.isoformat() if isinstance(cell, datetime | date | time) else cell
