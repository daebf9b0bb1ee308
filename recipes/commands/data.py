"""`rewriting data`: fetch public data, and look at data before training on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recipes.shared.flags.dialect import examples
from recipes.shared.flags.options import Columns, Limit
from rewriting.data.check import Summary, summarise
from rewriting.data.headers import parse_columns
from rewriting.data.load import load_exchanges
from rewriting.errors import UserError
from rewriting.exchange import LEVELS
from rewriting.runtime.files.disk import write_json

app = typer.Typer(
    help="Fetch public data, and look at data before training on it.",
    no_args_is_help=True,
    epilog=examples("rewriting data check sample", "rewriting data get epitome"),
)
SHOWN_BAD_ROWS = 20


@app.callback()
def data() -> None:
    """Fetch public data, and look at data before training on it."""


@app.command(
    epilog=examples(
        "rewriting data check sample",
        "rewriting data check my_replies.csv",
        "rewriting data check my_sheet.xlsx --columns seeker_post=question,response_post=answer",
        "rewriting data check data/epitome --json counts.json",
    )
)
def check(
    source: Annotated[
        str,
        typer.Argument(
            help="Data to check: a file, a folder, sample[:split], or a hub id org/name[:split]."
        ),
    ],
    columns: Columns = "",
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Count and list bad rows instead of stopping.")
    ] = False,
    limit: Limit = None,
    json: Annotated[Path | None, typer.Option(help="Write the counts to this JSON file.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing JSON file.")
    ] = False,
) -> None:
    """Print what is in a data set: rows, levels, lengths, bad rows, duplicates."""
    if json is not None and json.exists() and not overwrite:
        raise UserError(f"{json} exists. Pass --overwrite to replace it.")
    summary = Summary()
    if skip_bad_rows:
        rows = load_exchanges(
            source, on_bad_row=summary.add_bad_row, limit=limit, columns=parse_columns(columns)
        )
    else:
        rows = load_exchanges(source, limit=limit, columns=parse_columns(columns))
    summarise(rows, summary)
    if not summary.rows:
        reason = f": all {summary.num_bad_rows} rows are bad" if summary.num_bad_rows else ""
        raise UserError(f"{source} holds no exchange{reason}.")
    show(source, summary)
    if json is not None:
        write_json(json, summary.json())


@app.command(
    epilog=examples(
        "rewriting data get epitome",
        "rewriting data get empathetic_dialogues --output data",
    )
)
def get(
    name: Annotated[
        str, typer.Argument(help="Data set to fetch: epitome or empathetic_dialogues.")
    ],
    output: Annotated[
        Path, typer.Option(help="Folder in which the data set gets a folder of its own.")
    ] = Path("data"),
) -> None:
    """Fetch a public data set from where its authors keep it, and check what came.

    What is there already is left alone.
    """
    from rewriting.data.public import fetch

    folder = fetch(name, output)
    print(f"{name}: {folder}. Try: rewriting data check {folder}")


def show(source: str, summary: Summary) -> None:
    """The summary as tables in the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    counts = summary.json()
    facts = Table(title=Text(source), show_header=False, title_justify="left")
    facts.add_column(style="bold")
    facts.add_column(justify="right")
    for name in ("rows", "seekers", "duplicates", "with_history", "bad_rows"):
        facts.add_row(name.replace("_", " "), f"{counts[name]:,}")
    for name in ("seeker_words", "response_words"):
        values = counts[name]
        text = f"{values['min']} / {values['median']} / {values['p95']} / {values['max']}"
        facts.add_row(f"{name.replace('_', ' ')} (min / median / 95 % / max)", text)
    console.print(facts)
    if summary.labelled:
        levels = Table(title="levels and rationales", title_justify="left")
        levels.add_column("mechanism", no_wrap=True)
        for level in LEVELS:
            levels.add_column(f"level {level}", justify="right")
        levels.add_column("rationales", justify="right")
        levels.add_column("of them lost", justify="right")
        for mechanism in summary.labelled:
            cells = [f"{count:,}" for count in counts["levels"][mechanism]]
            found = f"{summary.rationales[mechanism]:,}"
            levels.add_row(mechanism, *cells, found, f"{summary.rationales_lost[mechanism]:,}")
        console.print(levels)
    for bad in summary.bad_rows[:SHOWN_BAD_ROWS]:
        console.print(Text(f"bad row: {bad}", style="red"), soft_wrap=True)
    if summary.num_bad_rows > SHOWN_BAD_ROWS:
        console.print(f"… and {summary.num_bad_rows - SHOWN_BAD_ROWS:,} more bad rows")
