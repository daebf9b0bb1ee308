"""`rewriting rewrite`: rewrite one response, or a file of any size, with a policy by name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recipes.shared.flags.checks import check_file_to_write, check_rewriter
from recipes.shared.flags.dialect import examples
from recipes.shared.flags.options import (
    Classifier,
    Columns,
    HelpText,
    Limit,
    Overwrite,
    SkipBadRows,
    takes,
)
from recipes.shared.gated import Safety
from recipes.shared.rewriter import CANDIDATES_HELP, MARGIN_HELP, Rewriter
from recipes.shared.rows import output_row
from recipes.shared.settings import LENDING_SENSE, PARTNER_REWARDS
from rewriting import Exchange, UserError
from rewriting.data.survey import bad_file, survey
from rewriting.words import counted

if TYPE_CHECKING:
    from policies.best_of import BestOf
    from policies.gated import Guard
    from rewriting.loop import Policy

CHUNK = 64  # rows between two writes: little is lost by a stop, and rows can be sorted by length
EPILOG = examples(
    "rewriting rewrite --input sample:test --output out.jsonl",
    "rewriting rewrite --input replies.csv --output out.jsonl --policy partner-start --seed 7",
    "rewriting rewrite --input replies.csv --output out.jsonl --num-candidates 8 --margin 1",
    'rewriting rewrite --seeker "I failed again." --response "Study harder."',
)


@dataclass(frozen=True)
class Options:
    """Options of `rewriting rewrite`."""

    input: Annotated[
        str | None,
        typer.Option(help="A file, a folder, sample[:split], or a hub id org/name[:split]."),
    ] = None
    output: Annotated[Path | None, typer.Option(help="File for the rewrites, .jsonl.")] = None
    seeker: Annotated[str | None, typer.Option(help="One seeker's post, instead of --input.")] = (
        None
    )
    response: Annotated[str | None, typer.Option(help="With --seeker: the reply to rewrite.")] = (
        None
    )
    policy: Annotated[
        str,
        typer.Option(help="Policy that rewrites: bank or another name, a folder, or a hub id."),
    ] = "bank"
    num_candidates: Annotated[int, typer.Option(min=0, help=CANDIDATES_HELP)] = 0
    margin: Annotated[float | None, typer.Option(min=0, help=MARGIN_HELP)] = None
    rewards: Annotated[
        str | None,
        typer.Option(
            help="Rewards that rank the candidates, as YAML; their values are written with each "
            f"rewrite. By default '{PARTNER_REWARDS}', and for bank and nearest the same with "
            f"'{LENDING_SENSE}'.",
            show_default=False,
        ),
    ] = None
    reward_batch_size: Annotated[
        int,
        typer.Option(
            min=0,
            help="How many texts a reward model reads at once; 0: 8 on a CPU, 64 on a GPU.",
        ),
    ] = 0
    seed: Annotated[int, typer.Option(help="The same seed gives the same rewrites.")] = 0
    limit: Limit = None
    columns: Columns = ""
    skip_bad_rows: SkipBadRows = False
    overwrite: Overwrite = False
    show: Annotated[int, typer.Option(min=0, help="Number of rewrites to show at the end.")] = 3
    as_json: Annotated[
        bool, typer.Option("--json", help="With --seeker: print one line of JSON instead of text.")
    ] = False
    classifier: Classifier = None
    help_text: HelpText = None
    allow_crisis: Annotated[
        bool,
        typer.Option(
            "--allow-crisis", help="Also rewrite posts that may be a crisis; their lines say so."
        ),
    ] = False


@takes(Options)
def rewrite(options: Options) -> None:
    """Rewrite responses to be more empathic.

    A file is rewritten row by row into OUTPUT. Stopped, the same command goes on where it was.
    """
    safety = Safety(options.classifier, options.help_text, options.allow_crisis)
    who = Rewriter(
        options.policy,
        options.num_candidates,
        options.margin,
        options.rewards,
        safety,
        options.reward_batch_size,
    )
    single = options.seeker is not None or options.response is not None
    if single:
        if options.input is not None or options.output is not None:
            raise UserError("give either --seeker and --response, or --input and --output.")
        check_texts(options.seeker, options.response)
        check_rewriter(who)
        rewrite_one(str(options.seeker), str(options.response), who, options.seed, options.as_json)
    elif options.input is None or options.output is None:
        raise UserError("give --input and --output, or --seeker and --response.")
    else:
        if options.output.suffix != ".jsonl":
            raise UserError(f"--output {options.output}: name a .jsonl file.")
        if options.as_json:
            raise UserError("--json goes with --seeker; the lines of a file are in its --output.")
        check_file_to_write(options.output, options.overwrite)
        check_rewriter(who)
        rewrite_file(
            options.input,
            options.output,
            who,
            options.seed,
            options.limit,
            options.columns,
            options.skip_bad_rows,
            options.overwrite,
            options.show,
        )


def output_rows(
    policy: Policy | BestOf, exchanges: Sequence[Exchange], seed: int, guard: Guard
) -> list[dict[str, Any]]:
    """A line for each exchange: what the gate says of it, its rewards where they were scored."""
    from policies.gated import rewrite_safely

    rows = rewrite_safely(policy, exchanges, guard, seed=seed)
    return [output_row(row, policy.name, seed, guard.gate.help_text) for row in rows]


def check_texts(seeker: str | None, response: str | None) -> None:
    if not (seeker or "").strip() or not (response or "").strip():
        raise UserError("--seeker and --response each need a text.")


def rewrite_one(seeker: str, response: str, who: Rewriter, seed: int, as_json: bool) -> None:
    """Rewrite one response and show it."""
    from rewriting.show import before_and_after

    guard = who.safety.guard()
    (row,) = output_rows(who.load(), [Exchange(seeker, response)], seed, guard)
    if as_json:
        print(json.dumps(row, ensure_ascii=False))
    else:
        from rich.console import Console

        Console().print(before_and_after(row))


def rewrite_file(
    source: str,
    output: Path,
    who: Rewriter,
    seed: int,
    limit: int | None,
    columns: str,
    skip_bad_rows: bool,
    overwrite: bool,
    show: int,
) -> None:
    """Rewrite every exchange of a source into a file of lines, resumably."""
    from policies.named import policy_digest
    from rewriting.runtime.files.jobs import LineJob
    from rewriting.runtime.progress import progress_bar

    rows = survey(
        source,
        limit=limit,
        columns=columns,
        skip_bad_rows=skip_bad_rows,
        set_aside=bad_file(output),
    )
    settings = {"input": source, "limit": limit, "seed": seed}
    settings |= {"content of the input": rows.digest}
    settings["policy_digest"] = policy_digest(who.policy)
    with LineJob(output, settings | asdict(who), chunk=CHUNK, overwrite=overwrite) as job:
        guard, policy = who.safety.guard(), who.load()
        left = islice(rows.exchanges(), job.rows_done, None)
        title = f"rewriting with {who.policy}"
        with progress_bar(title, rows.num_rows, job.rows_done) as advance:
            while chunk := list(islice(left, CHUNK)):
                job.write(output_rows(policy, chunk, seed, guard))
                advance(len(chunk))
    show_some(output, rows.num_rows, show)
    print(f"{output}: {counted(rows.num_rows, 'reply')} rewritten by {who.policy}")
    print_safety(output, guard.gate.help_text)
    if rows.num_bad_rows:
        print(f"{counted(rows.num_bad_rows, 'bad row')} set aside in {bad_file(output)}")


def show_some(output: Path, num_rows: int, count: int) -> None:
    """So many rewrites, spread over the file, in the terminal."""
    from rich.console import Console

    from rewriting.show import before_and_after

    shown = {num_rows * number // count for number in range(count)}
    with output.open(encoding="utf-8") as lines:
        for line in (line for number, line in enumerate(lines) if number in shown):
            Console().print(before_and_after(json.loads(line)))


def print_safety(output: Path, help_text: str) -> None:
    """How many rows were held back or rejected, and where somebody in need finds help."""
    counts: Counter[str] = Counter()
    with output.open(encoding="utf-8") as lines:
        for safety in (json.loads(line)["safety"] for line in lines):
            if "allow_crisis" in safety:
                counts["allowed"] += 1
            elif safety["verdict"] != "clear":
                counts[safety["verdict"]] += 1
            counts["rejected"] += bool(safety["reasons"]) and safety["verdict"] == "clear"
    if counts["crisis"] or counts["possible"] or counts["unchecked"]:
        print(
            f"not rewritten: {counted(counts['crisis'], 'crisis')}, "
            f"{counts['possible']:,} possible ones, {counts['unchecked']:,} unchecked (not "
            f"English). `safety` says why.\n{help_text}"
        )
    if counts["rejected"]:
        number = counted(counts["rejected"], "reply")
        print(f"returned unchanged, because every rewrite was rejected: {number}")
    if counts["allowed"]:
        number = counted(counts["allowed"], "post")
        print(f"rewritten although they may be a crisis (--allow-crisis): {number}")
