"""How well are appraisals called, and alignments found? Beside majority and plain similarity.

python evaluate.py alignment --data sample --split test --json out.json
python evaluate.py alignment --appraisals runs/prompt/model --alignment runs/alignment/model
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.tables import TableSettings, cell, may_write, percent, print_table
from rewriting.errors import UserError
from rewriting.runtime.settings import borrowed

if TYPE_CHECKING:
    from rewriting.data.appraisals import AppraisedExchange


@dataclass
class Config:
    """Settings of `evaluate.py alignment`."""

    appraisals: str = field(
        default="",
        metadata={
            "help": "Appraiser: a folder of train.py appraisals or a language model; '': the "
            "shipped one."
        },
    )
    alignment: str = field(
        default="",
        metadata={
            "help": "Alignment model: a folder of train.py alignment or a sentence encoder; '': "
            "the shipped one."
        },
    )
    data: str = field(
        default="sample",
        metadata={"help": "Appraised exchanges: a file in ALOE's format, or sample."},
    )
    split: str = field(
        default="test", metadata={"help": "Part of the data that is measured: train, dev or test."}
    )
    similarity: str = field(
        default="minilm-l6",
        metadata={
            "help": "Sentence encoder of the similarity baseline: a short name, a folder or a hub "
            "id."
        },
    )
    negatives: int = field(
        default=11,
        metadata={"help": "Number of pairs that are not aligned, for each aligned pair."},
    )
    limit: int = field(
        default=0,
        metadata={"help": "Maximum number of exchanges to use, starting from the first; 0: all."},
    )
    seed: int = field(
        default=0, metadata={"help": "Seed for drawing the moved replies and for the bootstrap."}
    )
    json: str = borrowed(TableSettings, "json")
    overwrite: bool = borrowed(TableSettings, "overwrite_json")


def run(config: Config) -> dict[str, Any]:
    """Measure both models on one split; prints both tables and writes JSON."""
    from rewards.appraisals.alignment.model import load_alignment
    from rewards.appraisals.appraiser import load_appraiser
    from rewards.appraisals.evaluation import of_appraisals
    from rewriting.data.appraisals import load_appraisals
    from rewriting.runtime.files.disk import write_json

    may_write(config.json, config.overwrite)
    if config.split not in ("train", "dev", "test"):
        raise UserError(f"split is train, dev or test, not {config.split!r}.")
    exchanges = list(load_appraisals(config.data))

    def of_split(name: str) -> list[AppraisedExchange]:
        return [exchange for exchange in exchanges if exchange.split == name]

    chosen = of_split(config.split)[: config.limit or None]
    if not chosen:
        raise UserError(f"{config.data} holds no appraised exchange of the {config.split} part.")
    appraiser = load_appraiser(config.appraisals)
    figures = {
        "appraisals": of_appraisals(appraiser, of_split("train"), chosen, seed=config.seed),
        "alignment": of_alignment(
            load_alignment(config.alignment),
            appraiser,
            of_split("dev"),
            chosen,
            config,
        ),
    }
    show(config, figures)
    if config.json:
        write_json(Path(config.json), figures)
    return figures


def of_alignment(
    model: Any,
    appraiser: Any,
    dev: list[AppraisedExchange],
    chosen: list[AppraisedExchange],
    config: Config,
) -> dict[str, Any]:
    """System → pairs (all, own) → figures; `called labels`: with the appraiser's labels of spans.

    Plain similarity, and a model that brings no thresholds of its own, take theirs from dev.
    """
    from rewards.appraisals.alignment.model import SimilarityAlignment
    from rewards.appraisals.alignment.pairs import grids_of, moved_grids
    from rewards.appraisals.alignment.reading import with_called_labels
    from rewards.appraisals.evaluation import (
        alignment_difference,
        alignment_figures,
        fit_thresholds,
    )
    from rewriting.runtime.models.named import load_sentence_encoder

    def both(exchanges: list[AppraisedExchange]) -> dict[str, Any]:
        own = grids_of(exchanges)
        if not any(grid.aligned for grid in own):
            raise UserError(f"{config.data}: a part without an aligned pair cannot be measured.")
        moved = moved_grids(own, negatives=config.negatives, seed=config.seed)
        return {"all": [*own, *moved], "own": own}

    encoder = load_sentence_encoder(config.similarity)
    plain = SimilarityAlignment(encoder, name=f"similarity ({config.similarity})")
    for system in (model, plain):
        if isinstance(system, SimilarityAlignment) and dev:
            fit_thresholds(system, both(dev)["all"])
    systems = ("model", "model, called labels", "similarity", "model minus similarity")
    found: dict[str, Any] = {name: {} for name in systems}
    for pairs, grids in both(chosen).items():
        found["model"][pairs] = alignment_figures(model, grids, seed=config.seed)
        called = with_called_labels(grids, appraiser)
        found["model, called labels"][pairs] = alignment_figures(model, called, seed=config.seed)
        found["similarity"][pairs] = alignment_figures(plain, grids, seed=config.seed)
        found["model minus similarity"][pairs] = alignment_difference(
            model, plain, grids, seed=config.seed
        )
    return found


def show(config: Config, figures: dict[str, Any]) -> None:
    """Both tables on the screen."""
    where = f"{config.data} ({config.split})"
    print_table(
        f"appraisals on {where}",
        ["system", "cut", "accuracy", "macro_f1", "n"],
        [
            [system, cut, cell(found, "accuracy"), cell(found, "macro_f1"), str(found["n"])]
            for system, cuts in figures["appraisals"].items()
            for cut, found in cuts.items()
        ],
    )
    names = ("precision", "recall")
    print_table(
        f"alignment on {where}",
        ["system", "pairs", "auroc", "f1", *names],
        [
            [system, pairs, cell(found, "auroc"), cell(found, "f1")]
            + [percent(found.get(name, "")) for name in names]
            for system, tables in figures["alignment"].items()
            for pairs, found in tables.items()
        ],
    )
