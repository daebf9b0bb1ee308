"""`rewriting insights`: empathy over time and experience, by group, with outcomes; one page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recipes.shared.flags.dialect import examples
from rewriting.errors import UserError
from rewriting.words import counted

if TYPE_CHECKING:
    from rewriting.insights.columns import Columns
    from rewriting.insights.findings import Finding, Series

EPILOG = examples(
    "rewriting score --input replies.csv --output scores.jsonl --alignment shipped",
    "rewriting insights --input scores.jsonl --output insights.html --user author"
    " --time created_at --group forum --outcome thanked --appraisals appraisals",
)


def insights(
    input: Annotated[
        Path, typer.Option(help="File with scored replies: .jsonl, .json, .csv, .tsv or .parquet.")
    ],
    output: Annotated[Path, typer.Option(help="Page to write, a .html file.")],
    user: Annotated[
        str, typer.Option(help="Name of the column that says who wrote the reply.")
    ] = "",
    time: Annotated[
        str, typer.Option(help="Name of the column with the time: dates, or seconds since 1970.")
    ] = "",
    group: Annotated[
        list[str] | None,
        typer.Option(help="Name of a column with groups to compare; may be repeated."),
    ] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a column with an outcome, a number or true and false; may be repeated."
        ),
    ] = None,
    appraisals: Annotated[
        str,
        typer.Option(
            help="Name of the column that maps each appraisal to how far the reply meets it, as "
            "`rewriting score --alignment shipped` writes it."
        ),
    ] = "",
    json: Annotated[
        Path | None, typer.Option(help="Also write the findings to this JSON file.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """What a large scored file says of empathy: over time, by group, with outcomes.

    Columns that are not named are not looked at. Replies of one user count as one cluster.
    """
    from rewriting.insights.columns import Wanted, read_columns
    from rewriting.insights.findings import findings, series
    from rewriting.report.insights import render
    from rewriting.report.page import write_report
    from rewriting.runtime.files.disk import write_json
    from rewriting.runtime.progress import progress_bar

    if output.suffix != ".html":
        raise UserError(f"{output}: --output must be a .html file.")
    if json is not None and json.resolve() in (input.resolve(), output.resolve()):
        raise UserError(f"{json} is already the input or the page: name another file for --json.")
    for path in filter(None, (output, json)):
        if path.exists() and not overwrite:
            raise UserError(f"{path} exists. Pass --overwrite to replace it.")
    wanted = Wanted(user, time, group or (), outcome or (), appraisals)
    with progress_bar("reading, asking, drawing", 3) as advance:
        columns = read_columns(input, wanted)
        advance(1)
        found = findings(columns)
        advance(1)
        shown = series(columns)
        advance(1)
    page = render(
        f"Empathy in {input.name}",
        facts=facts_of(columns, input),
        levels=level_shares(columns),
        found=found,
        plotted=shown,
    )
    write_report(output, page)
    if json is not None:
        write_json(json, as_json(columns, found, shown))
    if wanted.names:
        show(found)
    else:
        print("no question was asked: name columns with --user, --time, --group, --outcome")
    print(f"{output}: the page on {counted(len(columns.levels_NK), 'reply')}")


def facts_of(columns: Columns, path: Path) -> dict[str, str]:
    import numpy as np

    from rewriting.insights.findings import common

    total_N = columns.levels_NK.sum(axis=1)
    facts = {"file": path.name, "replies": f"{len(total_N):,}"}
    if columns.users is not None:
        facts["people"] = f"{len(columns.users.names):,}"
    if columns.day_N is not None and (~np.isnan(columns.day_N)).any():
        from datetime import UTC, datetime

        ends = (np.nanmin(columns.day_N), np.nanmax(columns.day_N))
        dates = [datetime.fromtimestamp(float(day) * 86_400, UTC).date() for day in ends]
        facts["time"] = f"{dates[0]} to {dates[1]}"
    for name, column in columns.groups.items():
        facts[f"groups of {name}"] = f"{len(common(column))} of {len(column.names)} compared"
    return facts | {"mean empathy": f"{total_N.mean():.2f} of 6"}


def level_shares(columns: Columns) -> dict[str, list[float]]:
    """Mechanism → percent of replies at strong, weak and none."""
    from rewriting.exchange import MECHANISMS

    return {
        name: [100 * float((columns.levels_NK[:, k] == level).mean()) for level in (2, 1, 0)]
        for k, name in enumerate(MECHANISMS)
    }


def as_json(columns: Columns, found: list[Finding], shown: dict[str, Series]) -> dict[str, Any]:
    """The findings and the plotted means, for a program."""
    return {
        "n": len(columns.levels_NK),
        "findings": [
            {"question": one.question, "measure": one.measure, "unit": one.unit}
            | asdict(one.slope)
            | {"adjusted_p": one.adjusted_p, "stands": one.stands}
            for one in found
        ],
        "series": {
            question: {name: [asdict(point) for point in points] for name, points in by.items()}
            for question, by in shown.items()
        },
    }


def show(found: list[Finding]) -> None:
    from recipes.shared.tables import print_table
    from rewriting.report.insights import row

    standing = [row(one) for one in found if one.stands]
    columns = ["question", "measure", "estimate", "p"]
    if standing:
        print_table("What stands", columns, [[one[name] for name in columns] for one in standing])
    print(f"{len(standing)} of {len(found)} answers are significant (adjusted p < 0.05)")
