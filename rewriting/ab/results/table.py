"""The statistics of a study on a table of votes, whoever collected them.

    figures = analyse_votes(pandas.read_csv("votes.csv"))
    figures["comparisons"][0]["ties_left_out"]["clustered_p_holm"]

The table is what `rewriting ab export` writes, a data frame, or a list of dicts of one's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rewriting.ab.results.analysis import figures_of, last_revisions
from rewriting.ab.study.study import TIE, Criterion, Item, Study, Vote
from rewriting.errors import UserError

NEEDED: Final = ("rater", "item", "winner", "left", "right")
COUNTED: Final = ("item", "repeat")
"""Kinds of pairs that figures are made of; practice and attention checks are no votes."""


def analyse_votes(
    table: Iterable[Mapping[str, Any]] | Any, *, systems: Sequence[str] = (), seed: int = 0
) -> dict[str, Any]:
    """The figures of the report: comparisons with tests and Holm over all of them, agreement,
    position, and strengths where there are more than two systems.

    table: a row for each vote, as a list of mappings or a data frame. Columns: `rater`, `item`,
    `winner` (a system, or "tie"), `left` and `right` (the systems shown there); optionally
    `criterion`, `exchange_id`, `kind`, `repeat_of`, `revision` and `excluded`, as exported. Rows
    that say `excluded` are left out. systems: in this order; by default by name.
    """
    rows = list(_rows(table))
    if not rows:
        raise UserError("the table of votes is empty.")
    for number, row in enumerate(rows, start=1):
        _check(row, number)
    kept = [row for row in rows if not _true(row.get("excluded")) and _text(row, "kind") in COUNTED]
    if not kept:
        raise UserError("the table holds no vote that counts: all are excluded, or of other kinds.")
    raters = {name: number for number, name in enumerate(_names(kept, "rater"), start=1)}
    votes = [_vote(row, raters) for row in kept]
    _refuse_doubled(votes)
    found = dict.fromkeys(sorted(name for vote in votes for name in (vote.left, vote.right)))
    unknown = [name for name in found if systems and name not in systems]
    if unknown:
        raise UserError(f"votes are on {unknown[0]!r}, which is not among the systems.")
    study = Study(
        systems=tuple(systems or found),
        items={item.id: item for item in map(_item, kept)},
        criteria=tuple(Criterion(name, name) for name in _names(kept, "criterion")),
        seed=seed,
    )
    return figures_of(study, last_revisions(votes))


def _rows(table: Any) -> Iterable[Mapping[str, Any]]:
    """The rows of a data frame of pandas (or one that has its to_dict), or of a list."""
    if hasattr(table, "to_dict") and hasattr(table, "columns"):
        found: list[Mapping[str, Any]] = table.to_dict(orient="records")
        return found
    return table


def _check(row: Mapping[str, Any], number: int) -> None:
    """Refuse what is no vote; the row is named by its number, from 1."""
    missing = [name for name in NEEDED if not _text(row, name)]
    if missing:
        there = ", ".join(map(str, row))
        raise UserError(f"vote {number} has no {missing[0]}; what is there: {there}.")
    winner, sides = _text(row, "winner"), (_text(row, "left"), _text(row, "right"))
    if winner not in (*sides, TIE):
        raise UserError(
            f"vote {number}: the winner is {winner!r}; it is {' or '.join(map(repr, sides))}, or "
            f"{TIE!r}."
        )
    if sides[0] == sides[1]:
        raise UserError(f"vote {number} compares {sides[0]!r} with itself.")


def _refuse_doubled(votes: Sequence[Vote]) -> None:
    seen = set()
    for vote in votes:
        key = (vote.rater, vote.item, vote.criterion, vote.revision)
        if key in seen:
            raise UserError(
                f"a rater voted twice on item {vote.item!r}, criterion {vote.criterion!r}. Leave "
                "one of the rows, or number them in a column `revision`."
            )
        seen.add(key)


DEFAULTS: Final = {"kind": "item", "criterion": "preferred"}
"""What a vote is where the table has no such column."""


def _text(row: Mapping[str, Any], name: str) -> str:
    """A cell as text; empty where it is missing, which is NaN in a data frame."""
    value = row.get(name)
    missing = value is None or value != value or value == ""
    return DEFAULTS.get(name, "") if missing else str(value)


def _names(rows: Sequence[Mapping[str, Any]], column: str) -> list[str]:
    return list(dict.fromkeys(_text(row, column) for row in rows))


def _true(value: Any) -> bool:
    """Of a truth value, also where a CSV file made a text of it."""
    return str(value).strip().lower() in ("true", "1", "1.0")


def _vote(row: Mapping[str, Any], raters: Mapping[str, int]) -> Vote:
    return Vote(
        rater=raters[_text(row, "rater")],
        item=_text(row, "item"),
        criterion=_text(row, "criterion"),
        winner=_text(row, "winner"),
        left=_text(row, "left"),
        right=_text(row, "right"),
        seconds=0.0,
        time="",
        revision=int(float(_text(row, "revision") or 0)),
    )


def _item(row: Mapping[str, Any]) -> Item:
    return Item(
        _text(row, "item"),
        seeker_post="",
        replies={_text(row, "left"): "", _text(row, "right"): ""},
        kind=_text(row, "kind"),
        repeat_of=_text(row, "repeat_of"),
        exchange_id=_text(row, "exchange_id"),
    )
