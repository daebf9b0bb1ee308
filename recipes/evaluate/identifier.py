"""How well does an identifier find levels and rationales? Beside the labels of any exchanges.

python evaluate.py identifier --model epitome --data data/epitome --split test --json out.json
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recipes.shared.tables import TableSettings, may_write, percent, print_table
from rewriting.exchange import MECHANISMS
from rewriting.runtime.settings import borrowed

MEASURES = ("accuracy", "macro_f1", "token_f1", "iou_f1", "n")


@dataclass
class Config:
    """Settings of `evaluate.py identifier`."""

    model: str = field(
        default="in-context",
        metadata={
            "help": "Identifier to measure: in-context, grounded, epitome, a folder of train.py, "
            "judge:MODEL, or ensemble:NAME,NAME."
        },
    )
    data: str = borrowed(TableSettings, "labelled_data")
    split: str = borrowed(TableSettings, "split")
    limit: int = borrowed(TableSettings, "limit")
    json: str = borrowed(TableSettings, "json")
    overwrite: bool = borrowed(TableSettings, "overwrite_json")


def run(config: Config) -> dict[str, Any]:
    """Assess every labelled exchange and compare; prints a table and writes JSON."""
    from recipes.shared.sources import labelled_exchanges
    from rewards.identifiers.evaluation import evaluate
    from rewards.identifiers.named import load_identifier
    from rewriting.runtime.files.disk import write_json

    may_write(config.json, config.overwrite)
    exchanges = labelled_exchanges(config.data, config.split, config.limit)
    figures = evaluate(load_identifier(config.model), exchanges)
    means = {
        name: sum(figures[m][name] for m in MECHANISMS) / len(MECHANISMS) for name in MEASURES[:-1]
    }
    print_table(
        f"{config.model} on {config.data} ({config.split})",
        ["mechanism", *MEASURES],
        [[m, *(percent(figures[m][name]) for name in MEASURES)] for m in MECHANISMS]
        + [["mean", *(percent(means[name]) for name in MEASURES[:-1]), ""]],
    )
    if config.json:
        write_json(Path(config.json), figures)
    return figures
