"""`rewriting ab plan`, `report`, `export` and `import`: before a study and after it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recipes.shared.extras import extra_needed
from recipes.shared.flags.dialect import examples
from recipes.shared.flags.options import takes
from rewriting.errors import UserError
from rewriting.words import counted

if TYPE_CHECKING:
    from rewriting.ab.study.plan import Assumptions, Plan
    from rewriting.ab.study.store import Store
    from rewriting.ab.study.study import Study

PLAN = examples(
    "rewriting ab plan",
    "rewriting ab plan --win-rate 0.7 --criteria 1 --raters 6",
    "rewriting ab plan --power 0.9 --votes-per-item 3 --tie-rate 0.3",
)
REPORT = examples(
    "rewriting ab report study",
    "rewriting ab report study --json report.json --html report.html --csv report.csv",
)
EXPORT = examples(
    "rewriting ab export study --output votes.csv",
    "rewriting ab export study --output preferences.jsonl --format trl --criterion empathic",
    "rewriting ab export study --output sheets/ --format sheet",
)
IMPORT = examples(
    "rewriting ab import study results-1.json results-2.json",
)
Folder = Annotated[Path, typer.Argument(metavar="STUDY_DIR", help="Folder of the study.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]


class Format(StrEnum):
    csv = "csv"
    jsonl = "jsonl"
    trl = "trl"
    sheet = "sheet"


def refuse_existing(*paths: Path | None, overwrite: bool) -> None:
    """Stop before any work is done that could not be saved."""
    for path in paths:
        if path is not None and path.exists() and not overwrite:
            raise UserError(f"{path} exists. Pass --overwrite to replace it.")


def plan(
    win_rate: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Smallest win rate that the study should detect, with ties left out."
        ),
    ] = 0.65,
    power: Annotated[
        float,
        typer.Option(
            min=0.05, max=0.99, help="Probability of detecting that win rate (statistical power)."
        ),
    ] = 0.8,
    criteria: Annotated[
        int, typer.Option(min=1, help="Number of tests made at once: criteria × pairs of systems.")
    ] = 3,
    tie_rate: Annotated[float, typer.Option(min=0, max=0.9, help="Expected share of ties.")] = 0.15,
    rater_correlation: Annotated[
        float,
        typer.Option(min=0, max=0.9, help="Expected correlation between two votes of one rater."),
    ] = 0.03,
    item_correlation: Annotated[
        float,
        typer.Option(min=0, max=0.9, help="Expected correlation between two votes on one pair."),
    ] = 0.1,
    raters: Annotated[
        list[int] | None, typer.Option(min=2, help="Number of raters to plan for; may be repeated.")
    ] = None,
    votes_per_item: Annotated[
        int | None,
        typer.Option(min=1, help="How many raters judge each pair. Default: all of them."),
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option(
            help="Check each plan with 2,000 simulated studies, and add pairs until its power is "
            "reached."
        ),
    ] = True,
    json: Annotated[Path | None, typer.Option(help="Write the plans to this JSON file.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """How many pairs and raters does a study need?

    For the test that the report makes: votes of a rater and on a pair resemble each other, ties are
    left out, Holm over all criteria. Says so where raters are too few for any number of pairs.
    """
    if abs(win_rate - 0.5) < 1e-9 or win_rate in (0, 1):
        raise UserError("--win-rate must lie between 0 and 1 and differ from 0.5, a draw.")
    if rater_correlation + item_correlation > 0.9:
        raise UserError("--rater-correlation and --item-correlation must be 0.9 or less together.")
    refuse_existing(json, overwrite=overwrite)
    with extra_needed("ab"):
        from rewriting.ab.study.plan import RATERS, Assumptions, confirmed, plan_json, plans
    from rewriting.runtime.files.disk import write_json

    assumptions = Assumptions(
        win_rate, power, criteria, tie_rate, rater_correlation, item_correlation
    )
    found = plans(assumptions, raters=raters or RATERS, votes_per_item=votes_per_item)
    if simulate:
        found = [confirmed(assumptions, one) for one in found]
    show_plans(assumptions, found, simulate)
    if json is not None:
        write_json(json, plan_json(assumptions, found))


def show_plans(assumptions: Assumptions, found: list[Plan], simulate: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    title = (
        f"To find a win rate of {assumptions.win_rate:.0%} with a power of {assumptions.power:.0%}"
    )
    table = Table(title=title, title_justify="left")
    power = "power, simulated" if simulate else "power, by formula"
    for column in ("raters", "votes per pair", "pairs", "pairs per rater", power):
        table.add_column(column, justify="right")
    for one in found:
        pairs = "never enough" if one.items is None else f"{one.items:,}"
        each = "–" if one.votes_per_rater is None else f"{one.votes_per_rater:.0f}"
        reached = f"{'at most ' if one.items is None else ''}{one.power:.0%}"
        table.add_row(str(one.raters), str(one.votes_per_item), pairs, each, reached)
    console = Console()
    console.print(table)
    console.print(
        f"{assumptions.criteria} tests at once (Holm), {assumptions.tie_rate:.0%} ties, "
        f"correlation {assumptions.rater_correlation:g} within raters and "
        f"{assumptions.item_correlation:g} within pairs. Few raters cannot speak for raters in "
        "general, however many pairs they judge.",
        soft_wrap=True,
    )


def open_study(folder: Path) -> tuple[Study, Store]:
    from rewriting.ab.study.store import Store
    from rewriting.ab.study.study import load_study

    return load_study(folder), Store(folder)


def report(
    study_dir: Folder,
    json: Annotated[Path | None, typer.Option(help="Write every figure to this JSON file.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write the report page to this HTML file.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the win rates to this CSV file.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """What raters prefer: win rates, tests, intervals, agreement, and how good the votes are."""
    refuse_existing(json, html, csv, overwrite=overwrite)
    with extra_needed("ab"):
        from rewriting.ab.results.analysis import analyse, last_revisions
        from rewriting.ab.results.export import csv_text, write_text
        from rewriting.ab.results.report import csv_rows, print_report, render
    from rewriting.runtime.files.disk import write_json

    study, store = open_study(study_dir)
    with store:
        votes = store.votes(all_revisions=True)
    if not any(study.items[vote.item].kind == "item" for vote in votes):
        raise UserError(f"{study_dir}: nobody has judged a pair yet.")
    figures = analyse(study, votes)
    print_report(figures)
    if json is not None:
        write_json(json, figures)
    if html is not None:
        write_text(html, render(study, figures, last_revisions(votes)))
    if csv is not None:
        write_text(csv, csv_text(csv_rows(figures)))
    for path in (json, html, csv):
        if path is not None:
            print(path)


@dataclass(frozen=True)
class Export:
    """Options of `rewriting ab export`."""

    study_dir: Folder
    output: Annotated[
        Path, typer.Option(help="File to write; with format sheet, the folder for the sheets.")
    ]
    format: Annotated[
        Format | None,
        typer.Option(help="Format of the output. Default: by the file's extension, csv or jsonl."),
    ] = None
    criterion: Annotated[
        str | None,
        typer.Option(
            help="With trl: criterion whose preferences are exported. Default: the first."
        ),
    ] = None
    per_vote: Annotated[
        bool,
        typer.Option("--per-vote", help="With trl: one row per vote, instead of one per majority."),
    ] = False
    conversational: Annotated[
        bool,
        typer.Option(
            "--conversational", help="With trl: write chat messages instead of plain texts."
        ),
    ] = False
    all_revisions: Annotated[
        bool,
        typer.Option(
            "--all-revisions", help="With csv and jsonl: also write votes that were changed later."
        ),
    ] = False
    rater: Annotated[
        list[int] | None,
        typer.Option(
            min=1, help="With sheet: export only the sheet of this rater; may be repeated."
        ),
    ] = None
    keep_personal_data: Annotated[
        bool,
        typer.Option(
            "--keep-personal-data",
            help="Keep mail addresses, phone numbers, handles and links in the texts.",
        ),
    ] = False
    overwrite: Overwrite = False


@takes(Export)
def export(options: Export) -> None:
    """Votes as CSV or JSON lines, preferences for TRL, or sheets for raters without a server."""
    chosen = options.format or _format_of(options.output)
    with extra_needed("ab"):
        from rewriting.ab.results import export as exporting
    study, store = open_study(options.study_dir)
    with store:
        if chosen is Format.sheet:
            export_sheets(study, store, options.output, options.rater, options.overwrite)
            return
        refuse_existing(options.output, overwrite=options.overwrite)
        votes = store.votes(all_revisions=True)
    scrub = not options.keep_personal_data
    if chosen is Format.trl:
        name = exporting.check_criterion(study, options.criterion)
        rows = list(
            exporting.preference_rows(
                study,
                votes,
                name,
                majority=not options.per_vote,
                conversational=options.conversational,
                scrub=scrub,
            )
        )
        kind = f"preferences ({name})"
    else:
        rows, kind = (
            list(
                exporting.vote_rows(study, votes, scrub=scrub, all_revisions=options.all_revisions)
            ),
            "votes",
        )
    if not rows:
        raise UserError(f"{options.study_dir} has no {kind} to export yet.")
    text = exporting.csv_text(rows) if chosen is Format.csv else exporting.json_lines(rows)
    exporting.write_text(options.output, text)
    print(f"{len(rows):,} {kind} in {options.output}")


def _format_of(output: Path) -> Format:
    found = {".csv": Format.csv, ".jsonl": Format.jsonl}.get(output.suffix.lower())
    if found is None:
        raise UserError(f"{output}: name a .csv or .jsonl file, or pass --format.")
    return found


def export_sheets(
    study: Study, store: Store, folder: Path, raters: list[int] | None, overwrite: bool
) -> None:
    """A file per rater. Texts stay as they are: raters must see what the study compares.

    The log notes who has a sheet: their work does not return to the pool while they are silent.
    """
    from rewriting.ab.results.export import write_text
    from rewriting.ab.server.sheet import render_sheet
    from rewriting.ab.server.work import SHEET

    paths = {rater: folder / f"sheet-{rater}.html" for rater in raters or study.raters}
    refuse_existing(*paths.values(), overwrite=overwrite)
    pages = {rater: render_sheet(study, store, rater) for rater in paths}
    for rater, path in paths.items():
        write_text(path, pages[rater])
        if all(event.kind != SHEET for event in store.events(rater)):
            store.add_event(rater, SHEET)
    print(f"{len(paths)} sheets in {folder}. Each is one file for one rater; results come back as")
    print("results-N.json:  rewriting ab import STUDY_DIR results-1.json …")


def import_(
    study_dir: Folder,
    results: Annotated[list[Path], typer.Argument(help="Results files that raters sent back.")],
) -> None:
    """Take the results of sheets into the study. Importing a file again changes nothing.

    A file with anything wrong in it is refused as a whole, and the files after it too.
    """
    from rewriting.ab.server.sheet import import_results

    study, store = open_study(study_dir)
    with store:
        for path in results:
            found = import_results(study, store, path)
            print(
                f"{path}: {counted(found.new, 'new vote')}, {found.known} known already, "
                f"{found.outdated} older than the vote in the study, {found.handed_over} on pairs "
                "that went to another rater"
            )
