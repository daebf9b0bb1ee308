"""Which system rewrites best? Empathy, fluency, coherence, specificity, diversity, edits.

    python evaluate.py rewrites --systems original,generic,prompted --data sample:test \\
        --json out.json --html report.html

Every figure comes with a 95 % interval, the change in empathy also by how empathic the original
was. The report is one file with plots and rewrites, new sentences and rationales marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.evaluate.rewrites.comparison import chosen_system, differences
from recipes.shared.outcomes import Assessor, Scorer, measured, open_judge_term, summary
from recipes.shared.systems import ORIGINAL, check_system, parse_systems, rewrites_of
from recipes.shared.tables import TableSettings, may_write, print_table
from rewriting import Exchange, UserError
from rewriting.exchange import MECHANISMS
from rewriting.measures.measure import with_interval
from rewriting.measures.rewrites import INITIAL, Assessed, Outcome, measure_of
from rewriting.runtime.settings import borrowed

if TYPE_CHECKING:
    from rewriting.report.curves import Curve
    from rewriting.report.page import Sample


@dataclass
class Config:
    """Settings of `evaluate.py rewrites`."""

    systems: str = field(
        default="original,generic,prompted",
        metadata={
            "help": "Systems to compare, by commas: original, a policy's name or folder, POLICY@N "
            "(best of N), or a file of outputs; label=… names one (docs/evaluation.md)."
        },
    )
    against: str = field(
        default="",
        metadata={
            "help": "System that the others are compared with in paired tests; '': the first one."
        },
    )
    data: str = borrowed(TableSettings, "data")
    split: str = borrowed(TableSettings, "split")
    limit: int = borrowed(TableSettings, "limit")
    max_empathy: int = field(
        default=6,
        metadata={
            "help": "Use only rows whose original reply has at most this total empathy, 0 to 6, by "
            "the identifier."
        },
    )
    model: str = field(
        default="in-context",
        metadata={
            "help": "Identifier that measures empathy: in-context, grounded, epitome, a folder or "
            "hub id of what train.py wrote, judge:MODEL, or ensemble:NAME,NAME."
        },
    )
    language_model: str = borrowed(TableSettings, "language_model")
    sentence_encoder: str = field(
        default="minilm-l6",
        metadata={"help": "Sentence encoder that specificity is measured with."},
    )
    rewards: str = field(
        default="", metadata={"help": "Further reward terms to measure, as YAML; '': none."}
    )
    judge: str = field(
        default="",
        metadata={
            "help": "Language model that compares every rewrite with its original: a name, or YAML "
            "such as '{model: NAME, endpoint: URL}' (docs/judge.md); '': none."
        },
    )
    ranked_by: str = field(
        default="",
        metadata={
            "help": "Rewards that rank the samples of POLICY@N, as YAML; '': the default rewards "
            "of train.py partner."
        },
    )
    seed: int = field(
        default=0, metadata={"help": "Seed for sampling the rewrites and for the intervals."}
    )
    json: str = borrowed(TableSettings, "json")
    html: str = borrowed(TableSettings, "html")
    samples: int = borrowed(TableSettings, "samples")
    log: str = field(
        default="",
        metadata={
            "help": "The log.jsonl of a training run, whose curves the report shows; '': none."
        },
    )
    overwrite: bool = borrowed(TableSettings, "overwrite")


def run(config: Config) -> dict[str, Any]:
    """Rewrite with every system, measure, compare; prints a table, writes JSON and the report."""
    from rewards.named import Models
    from rewriting.report.curves import read_log
    from rewriting.report.page import write_report
    from rewriting.runtime.files.disk import write_json

    may_write(config.json, config.overwrite)
    may_write(config.html, config.overwrite)
    systems = parse_systems(config.systems)
    for source in systems.values():
        check_system(source)
    against = chosen_system(config.against, list(systems))
    curves = read_log(Path(config.log)) if config.log else []
    judge = open_judge_term(config.judge) if config.judge else None
    models = Models(
        identifier=config.model,
        language_model=config.language_model,
        sentence_encoder=config.sentence_encoder,
    )
    assess = Assessor(models.identifier, rationales=bool(config.html))
    exchanges = chosen_exchanges(config, assess)
    scorer = Scorer(models, config.rewards, judge)
    made = {
        name: rewrites_of(source, exchanges, seed=config.seed, ranked_by=config.ranked_by)
        for name, source in systems.items()
    }
    outcomes = {name: measured(name, rows, assess, scorer) for name, rows in made.items()}
    quiet = {"normalize_embeddings": True, "show_progress_bar": False}
    encode = partial(models.sentence_encoder.encode, **quiet)
    figures = {
        name: summary(rows, seed=config.seed, encode=encode) for name, rows in outcomes.items()
    }
    for name, found in differences(outcomes, against, seed=config.seed).items():
        figures[name]["against"] = {"system": against, "measures": found}
    show(config, figures)
    if config.json:
        write_json(Path(config.json), figures)
    if config.html:
        write_report(Path(config.html), page_of(config, figures, outcomes, curves))
        print(f"report: {config.html}")
    return figures


def chosen_exchanges(config: Config, assess: Assessor) -> list[Exchange]:
    """The rows that are compared: of one split, up to an empathy, the first so many."""
    from recipes.shared.sources import rows_of_split

    rows = rows_of_split(config.data, config.split)
    if config.max_empathy < 6:
        found = assess([(one.seeker_post, one.response_post) for one in rows])
        pairs = zip(rows, found, strict=True)
        rows = [row for row, assessment in pairs if assessment.empathy <= config.max_empathy]
    if not rows:
        raise UserError(
            f"{config.data} (split {config.split}, empathy up to {config.max_empathy}) holds no "
            "exchange."
        )
    return rows[: config.limit or None]


def show(config: Config, figures: Mapping[str, Mapping[str, Any]]) -> None:
    """The table: measures below each other, systems side by side."""
    from rich.console import Console

    from rewriting.report.page import by_initial, measures_of, short_name, table

    titles = {name: measure.title for name, measure in measures_of(figures).items()}
    rows: dict[str, list[tuple[str, str]]] = {}
    for name, cells in table(figures).items():
        rows[titles[name]] = cells
        if name == "empathy_change":
            rows |= {f"  {INITIAL[group]}": row for group, row in by_initial(figures).items()}
    systems = ["measure", *map(short_name, figures)]
    full = [[title, *(with_interval(*cell) for cell in cells)] for title, cells in rows.items()]
    fits = table_width([systems, *full]) <= Console().width
    bare = [[title, *(value for value, _ in cells)] for title, cells in rows.items()]
    where = "with 95 % intervals" if fits else "95 % intervals in a wider window, --json and --html"
    title = f"rewrites of {config.data}, empathy by {config.model}; {where}"
    print_table(title, systems, full if fits else bare)
    show_differences(figures)


def show_differences(figures: Mapping[str, Mapping[str, Any]]) -> None:
    """A second table: every system against the chosen one; nothing where there is one system."""
    from rewriting.report.differences import compared, difference_table
    from rewriting.report.page import short_name

    against, others = compared(figures)
    if not others:
        return
    rows = [
        [measure_of(name).title, *(f"{cell.value}  {cell.p}".rstrip() for cell in cells)]
        for name, cells in difference_table(others).items()
    ]
    title = f"against {short_name(against)}, paired; p by sign flips over seekers, after Holm"
    print_table(title, ["measure", *map(short_name, others)], rows)


def table_width(rows: Sequence[Sequence[str]]) -> int:
    """How many characters wide a table of these rows is, lines included."""
    return 1 + sum(3 + max(map(len, column)) for column in zip(*rows, strict=True))


def page_of(
    config: Config,
    figures: Mapping[str, Mapping[str, Any]],
    outcomes: Mapping[str, Sequence[Outcome]],
    curves: Sequence[Curve],
) -> str:
    """The report: the figures, and exchanges spread evenly over the rows."""
    from rewriting.report.page import render

    num_rows = len(next(iter(outcomes.values())))
    count = min(config.samples, num_rows)
    places = [num_rows * number // count for number in range(count)]
    return render(
        "Empathic rewrites compared",
        facts={
            "data": config.data + (f", {config.split} part" if config.split != "all" else ""),
            "exchanges": f"{num_rows:,}",
            "identifier of empathy": config.model,
            "language model": config.language_model,
            **({"judge": config.judge} if config.judge else {}),
            "seed": str(config.seed),
        },
        figures=figures,
        samples=[sample_of(outcomes, place) for place in places],
        curves=curves,
    )


def sample_of(outcomes: Mapping[str, Sequence[Outcome]], place: int) -> Sample:
    """What every system made of one exchange."""
    from rewriting.report.page import Sample, Version

    def version(system: str, text: str, assessment: Assessed, **options: Any) -> Version:
        judged = assessment.judgements
        levels = {name: judged[name].level for name in MECHANISMS}
        rationales = {name: judged[name].rationales for name in MECHANISMS}
        return Version(system, text, levels, rationales, **options)

    rows = {system: rows[place] for system, rows in outcomes.items()}
    first = next(iter(rows.values()))
    exchange = first.rewrite.exchange
    return Sample(
        exchange.id,
        exchange.seeker_post,
        version(ORIGINAL, exchange.response_post, first.before),
        [
            version(system, one.rewrite.rewritten_response, one.after, rewards=one.values)
            for system, one in rows.items()
            if system != ORIGINAL
        ],
    )
