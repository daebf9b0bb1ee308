"""Train the micromodels: empathy by nearness to annotated sentences, explained piece by piece.

Seeds are the rationales of the train part; a boosting machine on three similarities gives the
levels (rewards/identifiers/micromodels/identifier.py). The figures stand beside two baselines'.

    accelerate launch train.py micromodels --data data/epitome --output runs/micromodels
"""

from __future__ import annotations

import logging
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import supervised_accelerator, track_figures
from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared, columns_field
from recipes.shared.supervised import Supervised
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.runtime.settings import borrowed
from rewriting.words import counted

if TYPE_CHECKING:
    from rewards.identifiers.micromodels.identifier import Micromodels
    from rewards.identifiers.seed_sentences import SentenceVectors

logger = logging.getLogger(__name__)
THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)
TRAINING_CACHE = 1_000_000  # sentences: every one of the data is embedded once
Figures = dict[str, dict[str, float]]  # mechanism → measure → value


@dataclass
class Config:
    """Settings of `train.py micromodels`."""

    output: str = field(
        default="runs/micromodels",
        metadata={"help": "Folder for the fitted model and its model card."},
    )
    data: str = borrowed(Supervised, "labelled_data")
    columns: str = columns_field()
    max_rows: int = borrowed(Supervised, "max_rows")
    encoder: str = borrowed(Supervised, "sentence_encoder")
    seeds: str = field(
        default="rationales",
        metadata={
            "help": "Seed sentences: rationales (all of the train part) or three (the paper's "
            "three per mechanism)."
        },
    )
    leave_one_out: bool = field(
        default=True,
        metadata={
            "help": "Ignore a response's own rationales when its training features are computed."
        },
    )
    tune: bool = field(
        default=False,
        metadata={
            "help": "Choose level offsets and rationale thresholds on the dev part, instead of the "
            "paper's most likely level and threshold 0.7."
        },
    )
    runs: int = field(
        default=0,
        metadata={
            "help": "Number of further fits, each on nine tenths of the train rows, to show the "
            "spread on test; 0: none."
        },
    )
    batch_size: int = field(
        default=32, metadata={"help": "How many sentences the encoder reads at once."}
    )
    report_to: str = borrowed(Shared, "report_to")
    seed: int = borrowed(Supervised, "seed")
    overwrite: bool = field(
        default=False, metadata={"help": "Replace a model that is already in the folder."}
    )


def run(config: Config) -> dict[str, Any]:
    """Fit, save and measure the model; the figures."""

    from recipes.shared.tables import may_write
    from rewards.identifiers.seed_sentences import SentenceVectors
    from rewriting.runtime.models.named import load_sentence_encoder

    logging.getLogger("interpret").setLevel(logging.WARNING)  # it tells of every bag
    accelerator = supervised_accelerator("micromodels", config)
    logger.info("%s; one does the work", counted(accelerator.num_processes, "process"))
    if not accelerator.is_main_process:
        return {}
    folder = Path(config.output) / "model"
    may_write(str(folder / "results.json"), config.overwrite)
    splits = labelled_splits(config)
    vectors = SentenceVectors(
        load_sentence_encoder(config.encoder),
        name=config.encoder,
        batch_size=config.batch_size,
        remember_all=True,
        cache_size=TRAINING_CACHE,
    )
    model = fitted(config, splits["train"], splits["dev"], vectors, config.seed)
    model.save(folder)
    figures: dict[str, Any] = {
        "train_rows": len(splits["train"]),
        "seeds": {mechanism: len(seeds.texts) for mechanism, seeds in model.seeds.items()},
        "thresholds": model.thresholds,
        "offsets": model.offsets,
        "results": measure(model, splits),
    }
    if config.runs:
        figures["resampled"] = resampled(config, splits, vectors)
    track_figures(accelerator, figures)
    config = replace(config, overwrite=False)  # says nothing about the model
    write_card(folder, config, figures, card(config, figures))
    tell_ending("micromodels", config.output)
    return figures


def labelled_splits(config: Config) -> dict[Any, list[Exchange]]:
    """The exchanges with levels; the train part needs all three mechanisms somewhere."""
    from recipes.shared.sources import load_splits

    splits = load_splits(
        config.data, max_rows=config.max_rows, seed=config.seed, columns=config.columns
    )
    found = {name: [row for row in rows if row.labels] for name, rows in splits.items()}
    if not found["train"] or not found["dev"]:
        sizes = ", ".join(f"{name} {len(rows)}" for name, rows in found.items())
        raise UserError(f"{config.data}: too few exchanges with levels to learn from ({sizes}).")
    return found


def fitted(
    config: Config,
    train: Sequence[Exchange],
    dev: Sequence[Exchange],
    vectors: SentenceVectors,
    seed: int,
) -> Micromodels:
    """The micromodels of the train rows, tuned on dev where that is asked for."""
    from rewards.identifiers.micromodels.identifier import Micromodels

    model = Micromodels.fit(
        train, vectors, seeds=config.seeds, leave_one_out=config.leave_one_out, seed=seed
    )
    if config.tune:
        tune(model, dev)
    return model


def tune(model: Micromodels, dev: Sequence[Exchange]) -> None:
    """Set the offsets by macro-F1 and accuracy, then the thresholds by the rationales' scores."""
    import numpy as np

    from rewards.identifiers.epitome.calibration import fit_decision_offsets
    from rewards.identifiers.evaluation import evaluate
    from rewards.identifiers.micromodels.identifier import THRESHOLD

    for mechanism in MECHANISMS:
        rows = [exchange for exchange in dev if mechanism in exchange.labels]
        if rows:
            readings = model.read([exchange.response_post for exchange in rows])
            probabilities = model.probabilities(mechanism, readings).clip(1e-9)
            gold = np.array([exchange.labels[mechanism].level for exchange in rows])
            offsets, _ = fit_decision_offsets(np.log(probabilities), gold)
            model.offsets[mechanism] = tuple(float(offset) for offset in offsets)
    scores = {}
    for threshold in THRESHOLDS:
        model.thresholds = dict.fromkeys(MECHANISMS, threshold)
        scores[threshold] = evaluate(model, dev)

    def best(mechanism: str) -> float:
        found = {t: f[mechanism] for t, f in scores.items() if mechanism in f}
        return max(
            found, key=lambda t: found[t]["token_f1"] + found[t]["iou_f1"], default=THRESHOLD
        )

    model.thresholds = {mechanism: best(mechanism) for mechanism in MECHANISMS}


def measure(model: Micromodels, splits: dict[Any, list[Exchange]]) -> list[dict[str, Any]]:
    """The model and the baselines, fitted on the same rows, on the dev and the test part."""
    from rewards.identifiers.baselines import BASELINES
    from rewards.identifiers.evaluation import evaluate

    systems: dict[str, Any] = {"micromodels": model}
    systems |= {name: fit(splits["train"]) for name, fit in BASELINES.items()}
    return [
        {"system": name, "split": split, "figures": evaluate(system, splits[split])}
        for split in ("dev", "test")
        if splits[split]
        for name, system in systems.items()
    ]


def resampled(
    config: Config, splits: dict[Any, list[Exchange]], vectors: SentenceVectors
) -> dict[str, Figures]:
    """Mean and standard deviation on test over fits on nine tenths of the train rows, drawn anew.

    Not a bootstrap: a boosting machine holds rows back to know when to stop, and would find copies
    of them among those it learns from.
    """
    from rewards.identifiers.evaluation import MEASURES, evaluate
    from rewriting.runtime.seeds import derive_seed

    found = []
    for number in range(config.runs):
        seed = derive_seed(config.seed, "run", number)
        rows = random.Random(seed).sample(splits["train"], k=round(0.9 * len(splits["train"])))
        model = fitted(config, rows, splits["dev"], vectors, seed)
        found.append(evaluate(model, splits["test"]))
        logger.info("fit %d of %d on nine tenths of the train rows", number + 1, config.runs)

    def over(summary: Any) -> Figures:
        return {
            mechanism: {name: summary([f[mechanism][name] for f in found]) for name in MEASURES}
            for mechanism in found[0]
        }

    return {"mean": over(statistics.fmean), "deviation": over(statistics.pstdev)}


def card(config: Config, figures: dict[str, Any]) -> str:
    rows = [(f"{row['system']}, {row['split']}", row["figures"]) for row in figures["results"]]
    if config.runs:
        for name, of_runs in figures["resampled"].items():
            rows.append((f"{name} of {config.runs} fits on nine tenths, test", of_runs))
    return CARD.format(
        encoder=config.encoder,
        data=config.data.replace(",", ", "),
        rows=figures["train_rows"],
        own="left out" if config.leave_one_out else "counted too, which flatters the train part",
        seeds=", ".join(f"{count} of {name}" for name, count in figures["seeds"].items()),
        thresholds=", ".join(f"{value}" for value in figures["thresholds"].values()),
        calls="chosen on dev" if config.tune else "the paper's",
        command=command("micromodels", config),
        results="\n".join(line for row in rows for line in lines_of(*row)),
    )


def lines_of(name: str, figures: Figures) -> list[str]:
    from rewards.identifiers.evaluation import MEASURES

    return [
        f"| {name} | {mechanism} | "
        + " | ".join(f"{measured[measure]:.1f}" for measure in MEASURES)
        + " |"
        for mechanism, measured in figures.items()
    ]


CARD = """# micromodels: empathy by the nearest annotated sentence

Per mechanism, the largest cosine similarity (`{encoder}`) between a sentence of the response and a
seed; an explainable boosting machine on the three similarities gives the level, the sentences near
a seed are the rationales (Lee, Kummerfeld, An and Mihalcea 2023).

- Data: {data}; {rows:,} exchanges of the train part (split by seeker, `rewriting.data.split_of`).
- Seeds: {seeds}. For a response's own training features, its own rationales are {own}.
- Thresholds of the rationales: {thresholds}; these and the calls of the levels are {calls}.
- Command: `{command}`

## Results
In percent. Where neither the annotators nor the system marked a rationale, its scores count 1, so
`majority`, which never marks any, shows the share of such examples.

| system | mechanism | accuracy | macro-F1 | token-F1 | IOU-F1 |
|---|---|---|---|---|---|
{results}

## Limits
It never looks at the seeker post: a kind sentence in the wrong place counts like any other. Whole
sentences are marked, never parts. A text longer than the encoder's window is cut. English only.
The folder holds the seeds word for word: share it only where the data may be shared.
"""
