"""Columns as people call them: in any case, with spaces, or by names of their own.

"Seeker Post" is seeker_post; --columns seeker_post=post,response_post=reply names the others.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from rewriting.runtime.files.json_files import cut, shown
from rewriting.runtime.loading import did_you_mean

if TYPE_CHECKING:
    from rewriting.data.rows import Row

EPITOME_COLUMNS: Final = {"sp_id", "rp_id", "seeker_post", "response_post", "level", "rationales"}
DIALOGUE_COLUMNS: Final = {"conv_id", "utterance_idx", "context", "prompt", "utterance"}
ALOE_COLUMNS: Final = {"target_text", "observer_text"}
OWN_COLUMNS: Final = ("seeker_post", "response_post", "id", "seeker_id", "history", *MECHANISMS)
KNOWN: Final = frozenset({*OWN_COLUMNS, *EPITOME_COLUMNS, *ALOE_COLUMNS})
"""Names that a column is recognised by in any spelling. Other columns keep theirs."""


def parse_columns(text: str) -> dict[str, str]:
    """Our name → theirs, from `seeker_post=post,response_post=reply`."""
    columns: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if not equals or not theirs:
            raise UserError(f"--columns {part}: write it as seeker_post=THE NAME IN YOUR FILE.")
        if ours not in KNOWN:
            raise UserError(
                f"--columns {part}: there is no column {ours!r}. {did_you_mean(ours, KNOWN)}"
                f"There is: {', '.join(OWN_COLUMNS)}."
            )
        if ours in columns:
            raise UserError(f"--columns names {ours} twice.")
        columns[ours] = theirs
    return columns


def plain(name: str) -> str:
    """A column's name in small letters, with underscores where it has spaces or hyphens."""
    return "_".join(name.replace("-", " ").replace("_", " ").casefold().split())


def with_our_names(rows: Iterable[Row], columns: Mapping[str, str]) -> Iterator[Row]:
    """The rows with their columns called as we call them."""
    known: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        names = tuple(row.cells)
        if names not in known:
            known[names] = our_names(names, columns, row.file)
        ours = known[names]
        if ours:
            row = replace(row, cells={ours.get(name, name): row.cells[name] for name in names})
        yield row


def our_names(names: Sequence[str], columns: Mapping[str, str], file: str) -> dict[str, str]:
    """Their name → ours, of the columns that are called otherwise."""
    ours: dict[str, str] = {}
    for name, theirs in columns.items():
        meant = [one for one in names if one == theirs] or [
            one for one in names if plain(one) == plain(theirs)
        ]
        if not meant:
            raise UserError(
                f"{file} has no column {theirs!r}, which --columns names. "
                f"{did_you_mean(theirs, names)}Its columns are: {cut(', '.join(names))}."
            )
        if name in names and meant[0] != name:
            raise UserError(
                f"{file} has a column {name} already: take {name}={theirs} out of --columns, or "
                "rename that one."
            )
        if meant[0] in ours:
            raise UserError(f"--columns names {theirs!r} twice: {name} and {ours[meant[0]]}.")
        ours[meant[0]] = name
    taken = {*names, *ours.values()} - ours.keys()
    for one in names:
        name = plain(one)
        if one in ours or name == one or name not in KNOWN or name in taken:
            continue
        if name in ours.values():
            raise UserError(f"{file} has the column {shown(name)} twice. Rename one of them.")
        ours[one] = name
    return {theirs: name for theirs, name in ours.items() if theirs != name}


def delimiter_of(head: str, ending: str) -> str:
    """What parts the cells of a header line.

    A .csv of European Excel has semicolons, and some have tabs. The usual sign of the ending counts
    wherever it gives a name that is known.
    """
    usual = "\t" if ending == ".tsv" else ","
    try:
        cells = {
            sign: next(csv.reader([head], delimiter=sign), []) for sign in (usual, ";", "\t", ",")
        }
    except csv.Error:  # the rows are read by the usual sign, and the bad one is named there
        return usual
    if len(cells[usual]) > 1 and (usual == "\t" or KNOWN & set(map(plain, cells[usual]))):
        return usual
    return max(cells, key=lambda sign: len(cells[sign]))  # of equals the first, which is usual
