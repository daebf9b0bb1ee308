"""`rewriting ab`: blinded human A/B studies, from outputs to served pages. See docs/ab-tests.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recipes.commands.ab import results as ab_results
from recipes.commands.ab import serve as ab_serve
from recipes.shared.flags.dialect import examples
from recipes.shared.flags.options import takes
from rewriting.data.rows import Row, raise_bad_row, read_rows
from rewriting.errors import UserError
from rewriting.words import counted

if TYPE_CHECKING:
    from rewriting.ab.study.create import Output
    from rewriting.ab.study.study import Criterion, Study

GROUP = examples(
    "rewriting ab create --system ours=ours.jsonl --system theirs=theirs.jsonl --raters 6"
    " --output study",
    "rewriting ab serve study",
    "rewriting ab report study --html report.html",
)
app = typer.Typer(
    help="Blinded human A/B studies in the browser.", no_args_is_help=True, epilog=GROUP
)
app.command("plan", epilog=ab_results.PLAN)(ab_results.plan)
app.command("serve", epilog=ab_serve.SERVE)(ab_serve.serve)
app.command("links", epilog=ab_serve.LINKS)(ab_serve.links)
app.command("revoke", epilog=ab_serve.REVOKE)(ab_serve.revoke)
app.command("backup", epilog=ab_serve.BACKUP)(ab_serve.backup)
app.command("report", epilog=ab_results.REPORT)(ab_results.report)
app.command("export", epilog=ab_results.EXPORT)(ab_results.export)
app.command("import", epilog=ab_results.IMPORT)(ab_results.import_)


@app.callback()
def ab() -> None:
    """Blinded human A/B studies in the browser, with statistics that a reviewer accepts."""


@dataclass(frozen=True)
class NewStudy:
    """Options of `rewriting ab create`."""

    system: Annotated[
        list[str],
        typer.Option(
            help="A system as NAME=FILE, with its outputs (rewriting rewrite); give two or more."
        ),
    ]
    raters: Annotated[int, typer.Option(min=1, help="Number of people who will judge.")]
    output: Annotated[Path, typer.Option(help="Folder for the new study.")]
    votes_per_item: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many raters judge each pair. Default: 3, or all of them if fewer."
        ),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of exchanges, drawn at random by the seed."),
    ] = None
    seed: Annotated[int, typer.Option(help="The same seed and outputs give the same study.")] = 0
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            help="Question for raters as NAME=QUESTION; may be repeated. Default: empathic, "
            "fluent, specific."
        ),
    ] = None
    ties: Annotated[bool, typer.Option(help="Offer the answer “no difference”.")] = True
    repeats: Annotated[
        int,
        typer.Option(min=0, help="Number of pairs that each rater sees again, with sides swapped."),
    ] = 4
    practice: Annotated[
        str,
        typer.Option(
            help="Practice pairs: a file with seeker_post, better, worse and note; built-in; or "
            "none."
        ),
    ] = "built-in"
    attention: Annotated[
        str,
        typer.Option(
            help="Attention checks: a file with seeker_post, better and worse; built-in; or none."
        ),
    ] = "built-in"
    minimum_attention: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Exclude raters who pass a smaller share of the attention checks than this.",
        ),
    ] = 0.75
    minimum_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            help="Exclude raters whose median time per pair is shorter than this, in seconds.",
        ),
    ] = 3.0
    title: Annotated[str, typer.Option(help="Title that raters see at the top of the pages.")] = (
        "Comparing replies"
    )
    consent: Annotated[
        Path | None,
        typer.Option(help="Text file for the consent page, instead of the built-in text."),
    ] = None
    instructions: Annotated[
        Path | None,
        typer.Option(help="Text file for the instructions, instead of the built-in text."),
    ] = None
    help_resources: Annotated[
        Path | None,
        typer.Option(
            help="Text file of help resources, one per line, for every page, instead of the "
            "built-in ones."
        ),
    ] = None
    include_crisis: Annotated[
        bool,
        typer.Option("--include-crisis", help="Keep posts that the safety gate would hold back."),
    ] = False
    allow_unsafe_candidates: Annotated[
        bool,
        typer.Option(
            "--allow-unsafe-candidates",
            help="Also show replies that the output gate would reject. The study records this.",
        ),
    ] = False


@app.command(
    epilog=examples(
        "rewriting ab create --system agent=agent.jsonl --system baseline=baseline.jsonl"
        " --raters 6 --output study",
        "rewriting ab create --system a=a.jsonl --system b=b.jsonl --raters 12"
        " --votes-per-item 5 --criterion 'warm=Which reply is warmer?' --no-ties"
        " --limit 40 --output study",
    )
)
@takes(NewStudy)
def create(options: NewStudy) -> None:
    """Freeze a study: which pairs, who judges them, on which side each reply stands.

    Sides and order are balanced for every rater and pair, and follow from the seed. Replies and
    texts that name a system are refused; posts in crisis, and replies that the output gate rejects,
    are left out unless asked for.
    """
    from rewriting.ab.study import texts
    from rewriting.ab.study.create import Design, create_study, named_in_posts, say
    from rewriting.ab.study.study import CRITERIA, Exclusion, save_study

    outputs = read_systems(options.system)
    design = Design(
        raters=options.raters,
        votes_per_item=options.votes_per_item or min(3, options.raters),
        seed=options.seed,
        criteria=[read_criterion(text) for text in options.criterion or ()] or CRITERIA,
        allow_ties=options.ties,
        practice=own_rows(options.practice, texts.PRACTICE),
        attention=own_rows(options.attention, texts.ATTENTION),
        repeats=options.repeats,
        limit=options.limit,
        title=options.title,
        consent=read_text(options.consent, texts.CONSENT),
        instructions=read_text(options.instructions, texts.INSTRUCTIONS),
        help_resources=read_lines(options.help_resources, texts.HELP_RESOURCES),
        exclusion=Exclusion(options.minimum_attention, options.minimum_seconds),
    )
    study = create_study(
        outputs,
        design,
        crisis=None if options.include_crisis else held_back(),
        unsafe=None if options.allow_unsafe_candidates else rejected(),
    )
    save_study(study, options.output)
    show_created(study, options.output)
    if study.left_out:
        print(f"left out: {say(study.left_out)}")
    if study.unsafe_candidates:
        print("warning: no output gate has seen the replies (--allow-unsafe-candidates).")
    for name, count in named_in_posts(study).items():
        print(
            f"warning: the posts of {counted(count, 'pair')} contain {name!r}, a system's name: "
            "check them."
        )


def show_created(study: Study, output: Path) -> None:
    counts = [len(assigned) for assigned in study.assignments.values()]
    each = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    print(
        f"{output}: {counted(len(study.of_kind('item')), 'pair')} of {len(study.systems)} systems, "
        f"{counted(study.votes_per_item, 'vote')} each, by {counted(len(counts), 'rater')} with "
        f"{each} pages each (practice, checks and repeats included)"
    )
    print(f"Next: rewriting ab serve {output}")


def read_systems(texts: Sequence[str]) -> dict[str, list[Output]]:
    """Name → outputs. Rows belong together by their posts, or else by id, or by seeker post."""
    files: dict[str, list[Row]] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or not name.strip() or not path.strip():
            raise UserError(
                f"--system {text}: give a name and a file, as --system agent=agent.jsonl."
            )
        if name.strip() in files:
            raise UserError(f"--system {text}: another system has this name.")
        files[name.strip()] = list(read_rows(Path(path.strip()).expanduser(), raise_bad_row))
    rows = [row for file in files.values() for row in file]
    key_of = next(key for key in KEYS if all(key(row.cells) for row in rows))
    return {name: [read_output(row, key_of) for row in file] for name, file in files.items()}


Cells = Mapping[str, Any]


def _by_posts(cells: Cells) -> str:
    """A key from both posts of a rewrite: systems saw the same exchange, whatever its id."""
    from rewriting.data.split import fingerprint

    if "rewritten_response" not in cells or not cells.get("response_post"):
        return ""
    return fingerprint(str(cells.get("seeker_post", "")), str(cells["response_post"])).hex()


def _by_id(cells: Cells) -> str:
    return str(cells.get("id") or "")


def _by_seeker_post(cells: Cells) -> str:
    """Not the post itself: exports show the key."""
    from rewriting.data.split import fingerprint

    return fingerprint(str(cells.get("seeker_post", ""))).hex()


KEYS: tuple[Callable[[Cells], str], ...] = (_by_posts, _by_id, _by_seeker_post)


def read_output(row: Row, key_of: Callable[[Cells], str]) -> Output:
    """A system's reply: `rewritten_response`, or `response_post` in files that have no other."""
    from rewriting.ab.study.create import Output

    where = f"{row.file}, line {row.line}"
    reply = row.cells.get("rewritten_response", row.cells.get("response_post"))
    seeker_post = row.cells.get("seeker_post")
    if not isinstance(seeker_post, str) or not isinstance(reply, str):
        raise UserError(
            f"{where}: a file of outputs has seeker_post and rewritten_response (or response_post)."
        )
    history = row.cells.get("history") or ()
    if isinstance(history, str) or not all(isinstance(turn, str) for turn in history):
        raise UserError(f"{where}: history must be a list of texts.")
    original = row.cells.get("response_post") if "rewritten_response" in row.cells else ""
    own = original if isinstance(original, str) else ""
    return Output(key_of(row.cells), seeker_post, reply, tuple(history), where, own)


def read_criterion(text: str) -> Criterion:
    from rewriting.ab.study.study import Criterion

    name, equals, question = (part.strip() for part in text.partition("="))
    if not equals or not question:
        raise UserError(f"--criterion {text}: give 'name=question', as 'warm=Which is warmer?'.")
    return Criterion(name, question)


def own_rows(source: str, built_in: Sequence[Cells]) -> Sequence[Cells]:
    if source == "built-in":
        return built_in
    return () if source == "none" else [r.cells for r in read_rows(Path(source), raise_bad_row)]


def read_text(path: Path | None, default: str) -> str:
    if path is None:
        return default
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}.") from error


def read_lines(path: Path | None, default: Sequence[str]) -> list[str]:
    return [line for line in read_text(path, "\n".join(default)).splitlines() if line.strip()]


def rejected() -> Callable[[Output], bool]:
    """Whether the output gate rejects a system's reply, with all that `rewriting rewrite` asks.

    Its models are loaded with the first reply, after mistakes in the files have been found.
    """
    from functools import cache

    from recipes.shared.gated import Safety
    from rewriting import Exchange, Rewrite

    guard = cache(Safety().guard)

    def unsafe(output: Output) -> bool:
        if not output.reply.strip() or output.reply == output.response_post:
            return False
        exchange = Exchange(output.seeker_post, output.response_post, history=output.history)
        return not guard().check(Rewrite(exchange, output.reply)).clear

    return unsafe


def held_back() -> Callable[[str], bool]:
    """Whether the rules of the safety gate find a post grave, or possibly so.

    A post in another language is not held back: raters are people who read it, not a machine.
    """
    from rewriting.safety import check_post

    return lambda post: check_post(post).alarming
