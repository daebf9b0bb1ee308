"""Which generator responds best? Emp-F1, perplexity, diversity, closeness to the human responses.

    python evaluate.py responses --systems human,emprl-sft,emprl --data sample:test --json out.json
    python evaluate.py responses --systems zero_shot=model:flan-t5-small,runs/emprl/policy \\
        --data data/empathetic_dialogues/valid.csv --limit 1000 --html report.html

Emp-F1 (EmpRL, arXiv 2408.02976) asks whether a response is as empathic as the human one: the mean
over the three mechanisms of the weighted F1 between their levels, as the identifier calls them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recipes.evaluate.responses.systems import Writers, measured, summary, write_outputs
from recipes.shared.systems import parse_systems
from recipes.shared.tables import TableSettings, may_write, print_table
from rewriting import Exchange, UserError
from rewriting.measures.measure import with_interval
from rewriting.measures.responses import RESPONSE_MEASURES, Response
from rewriting.runtime.settings import borrowed


@dataclass
class Config:
    """Settings of `evaluate.py responses`."""

    systems: str = field(
        default="human,emprl-sft,emprl",
        metadata={
            "help": "Systems to compare, by commas: human, a policy's name or folder, model:NAME "
            "(an untrained language model), or a file of outputs; label=… names one."
        },
    )
    data: str = borrowed(TableSettings, "data")
    split: str = borrowed(TableSettings, "split")
    limit: int = borrowed(TableSettings, "limit")
    shuffle: bool = field(
        default=False,
        metadata={
            "help": "With limit: draw the rows at random, by the seed, instead of taking the first."
        },
    )
    model: str = field(
        default="epitome",
        metadata={
            "help": "Identifier that measures levels of empathy: in-context, grounded, epitome, a "
            "folder of train.py, judge:MODEL, or ensemble:NAME,NAME."
        },
    )
    language_model: str = borrowed(TableSettings, "language_model")
    temperature: float = field(
        default=0.0,
        metadata={"help": "Sampling temperature of all generators; 0: that of each policy."},
    )
    top_p: float = field(
        default=0.0,
        metadata={"help": "Top-p (nucleus sampling) of all generators; 0: that of each policy."},
    )
    seed: int = field(
        default=0, metadata={"help": "Seed for sampling the responses and for the intervals."}
    )
    json: str = borrowed(TableSettings, "json")
    html: str = borrowed(TableSettings, "html")
    samples: int = borrowed(TableSettings, "samples")
    outputs: str = field(
        default="",
        metadata={
            "help": "Folder for the responses and their levels, a .jsonl file per system; '': they "
            "are not written."
        },
    )
    overwrite: bool = borrowed(TableSettings, "overwrite")


def run(config: Config) -> dict[str, Any]:
    """Respond with every system, measure, compare; prints tables, writes JSON and the report."""
    from rewards.named import Models
    from rewriting.runtime.files.disk import write_json

    may_write(config.json, config.overwrite)
    may_write(config.html, config.overwrite)
    writers = Writers(config.temperature, config.top_p)
    systems = parse_systems(config.systems)
    for name, source in systems.items():
        writers.check(source)
        if config.outputs:
            may_write(str(output_file(config, name)), config.overwrite)
    models = Models(identifier=config.model, language_model=config.language_model)
    exchanges = chosen_exchanges(config)
    made = {n: writers.responses(s, exchanges, seed=config.seed) for n, s in systems.items()}
    outcomes = measured(made, exchanges, models)
    figures = summary(outcomes, seed=config.seed)
    show(config, figures)
    if config.json:
        write_json(Path(config.json), figures)
    for name, rows in outcomes.items() if config.outputs else ():
        write_outputs(output_file(config, name), rows)
    if config.html:
        from rewriting.report.page import write_report

        write_report(Path(config.html), page_of(config, figures, outcomes))
        print(f"report: {config.html}")
    return figures


def output_file(config: Config, system: str) -> Path:
    return Path(config.outputs) / f"{system.strip('/').replace('/', '_')}.jsonl"


def chosen_exchanges(config: Config) -> list[Exchange]:
    """The rows that are answered: of one split, the first so many or so many drawn at random."""
    from recipes.shared.sources import drawn, rows_of_split

    if config.limit < 0:
        raise UserError(f"limit must be 0 or more, not {config.limit}.")
    rows = rows_of_split(config.data, config.split)
    if not rows:
        raise UserError(f"{config.data} (split {config.split}) holds no exchange.")
    if config.shuffle:
        return drawn(rows, config.limit, config.seed)
    return rows[: config.limit or None]


def show(config: Config, figures: Mapping[str, Mapping[str, Any]]) -> None:
    """Measures below each other, systems side by side; then Emp-F1 by emotion, the worst first."""
    from rewriting.report.page import short_name

    systems = ["measure", *map(short_name, figures)]
    rows = [
        [measure.title, *(cell(name, one) for one in figures.values())]
        for name, measure in RESPONSE_MEASURES.items()
    ]
    print_table(f"responses to {config.data}, levels by {config.model}", systems, rows)
    emotions = by_emotion(figures)
    if emotions:
        rows = [[name, *map(percent, values)] for name, values in emotions]
        print_table("Emp-F1 by emotion", ["emotion", *systems[1:]], rows)


def cell(name: str, figures: Mapping[str, Any]) -> str:
    """A figure with its interval, where it has one."""
    measure, interval = RESPONSE_MEASURES[name], figures["intervals"].get(name)
    return with_interval(measure.shown(figures[name]), measure.shown_interval(interval))


def by_emotion(figures: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[float]]]:
    """Emotion → the Emp-F1 of every system, ordered by that of the last one."""
    found = [one["by_emotion"] for one in figures.values()]
    names = sorted(found[-1], key=lambda name: found[-1][name]["emp_f1"])
    return [(name, [emotions[name]["emp_f1"] for emotions in found]) for name in names]


def percent(value: float) -> str:
    return f"{value:.1f}"


def page_of(
    config: Config,
    figures: Mapping[str, Mapping[str, Any]],
    outcomes: Mapping[str, Sequence[Response]],
) -> str:
    """The report: the tables, and exchanges spread evenly over the rows."""
    from rewriting.report.page import short_name
    from rewriting.report.responses import render

    first = next(iter(outcomes.values()))
    count = min(config.samples, len(first))
    places = [len(first) * number // count for number in range(count)]
    return render(
        "Responses compared",
        facts={
            "data": config.data + (f", {config.split} part" if config.split != "all" else ""),
            "responses": f"{len(first):,}",
            "identifier of levels": config.model,
            "judge of perplexity": config.language_model,
            "temperature, top-p": f"{config.temperature or 'of the policy'}, "
            f"{config.top_p or 'of the policy'}",
            "seed": str(config.seed),
        },
        systems=[short_name(name) for name in figures],
        table=[
            (measure, [cell(name, one) for one in figures.values()])
            for name, measure in RESPONSE_MEASURES.items()
        ],
        emotions=[(name, list(map(percent, values))) for name, values in by_emotion(figures)],
        samples=[
            {
                "context": [*first[place].exchange.history, first[place].exchange.seeker_post],
                "emotion": first[place].exchange.extra.get("emotion"),
                "human": (first[place].exchange.response_post, first[place].human),
                "responses": [
                    (short_name(name), rows[place].response, rows[place].generated)
                    for name, rows in outcomes.items()
                ],
            }
            for place in places
        ],
    )
