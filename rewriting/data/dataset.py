"""`Dataset` objects of the datasets library, in and out.

    exchanges = list(from_dataset(dataset))
    dataset = to_dataset(policy.rewrite(exchanges))

A cell that is None counts as missing: a table has no other way to leave a cell out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from rewriting.data.formats import exchanges_of
from rewriting.data.rows import BadRow, OnBadRow, Row, sound_rows, stop_at_bad_row
from rewriting.errors import UserError
from rewriting.exchange import Exchange, Rewrite

if TYPE_CHECKING:
    from datasets import Dataset

Rows = Iterable[Mapping[str, Any]]


def from_dataset(
    dataset: Dataset | Rows,
    *,
    name: str = "dataset",
    on_bad_row: OnBadRow = stop_at_bad_row,
    limit: int | None = None,
    columns: Mapping[str, str] | None = None,
) -> Iterator[Exchange]:
    """Stream the exchanges of a Dataset, an IterableDataset, or any other rows by column.

    The columns are those of a file (docs/data.md). name: what errors and the ids of rows without
    one call it; for EPITOME's columns it has to tell the mechanism. on_bad_row: called for each bad
    row; the default raises a UserError that names it. limit: take the first so many exchanges.
    columns: our names of columns → those of the rows, where they are called otherwise.
    """
    if isinstance(dataset, Mapping):
        splits = ", ".join(map(str, dataset))
        raise UserError(f"{name} is a mapping ({splits}), not rows. Take one of its splits.")
    rows = sound_rows(_rows(dataset, name, on_bad_row), on_bad_row)
    return islice(exchanges_of(rows, on_bad_row, columns), limit)


def _rows(dataset: Rows, name: str, on_bad_row: OnBadRow) -> Iterator[Row]:
    for number, cells in enumerate(dataset, start=1):
        if isinstance(cells, Mapping):
            there = {column: value for column, value in cells.items() if value is not None}
            yield Row(name, number, there)
        else:
            reason = f"a mapping of columns is needed, not {type(cells).__name__}"
            on_bad_row(BadRow(name, number, reason, cells))


def to_dataset(rows: Iterable[Rewrite | Exchange]) -> Dataset:
    """A Dataset with a row for each rewrite, or exchange, that `from_dataset` reads again.

    A rewrite is its exchange with `rewritten_response`, `edits` and the gate's `reasons`. Columns
    that some rows lack are None there.
    """
    from datasets import Dataset
    from pyarrow import ArrowInvalid, ArrowTypeError

    cells = [_cells(row) for row in rows]
    columns = dict.fromkeys(column for row in cells for column in row)
    table = {column: [row.get(column) for row in cells] for column in columns}
    try:
        return Dataset.from_dict(table)
    except (ArrowInvalid, ArrowTypeError) as error:
        raise UserError(
            f"a column holds values of different kinds, which a table cannot ({error})."
        ) from error


def _cells(row: Rewrite | Exchange) -> dict[str, Any]:
    if isinstance(row, Exchange):
        return row.row()
    return row.exchange.row() | {
        "rewritten_response": row.rewritten_response,
        "edits": [edit.row() for edit in row.edits],
        "reasons": list(row.reasons),
    }
