"""Train the reader of a sentence under a post: the model behind `grounded` and `contrast`.

It learns to tell the answer that a person gave to a post from answers to other posts, from stock
sentences, nonsense and misfits, and what kind of empathy a sentence has (rewards/reading/). Then
the rules that turn this into levels are fitted on the dev part.

    python train.py reader --data data/epitome,sample --dialogues data/empathetic_dialogues
    python evaluate.py audit --data sample:test --rewards '{contrast: 1}'
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import supervised_accelerator
from recipes.shared.cards import write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared
from recipes.shared.supervised import Supervised, output_field, train_supervised
from recipes.train.reader.figures import card, kind_figures
from recipes.train.reader.material import (
    calm_posts,
    counterfactuals,
    form_sentences,
    labelled_splits,
    material_of,
    painful_posts,
    smallest,
    worth_sentences,
)
from rewriting.exchange import Exchange
from rewriting.runtime.settings import borrowed
from rewriting.words import counted

if TYPE_CHECKING:
    from rewards.reading.reader import SentenceReader
    from rewriting.data import Split

logger = logging.getLogger(__name__)


@dataclass
class Config:
    """Settings of `train.py reader`."""

    output: str = output_field("reader")
    data: str = field(
        default="sample",
        metadata={
            "help": "Labelled exchanges with rationales: files, folders, hub ids or sample, "
            "separated by commas."
        },
    )
    dialogues: str = field(
        default="",
        metadata={
            "help": "Exchanges without labels, from which the reader also learns what fits a post; "
            "'': none."
        },
    )
    counterfactuals: str = field(
        default="sample:counterfactuals",
        metadata={
            "help": "Sentences written to fool an identifier: the common start of two source "
            "names; _train and _dev are appended."
        },
    )
    calm: str = field(
        default="sample:everyday,sample:calm",
        metadata={
            "help": "Exchanges that call for no empathy; several sources are separated by commas."
        },
    )
    encoder: str = borrowed(Supervised, "encoder")
    second: str = field(
        default="mpnet-base",
        metadata={
            "help": "Frozen encoder whose score of fit is averaged with the reader's; '': none."
        },
    )
    rank: int = borrowed(Supervised, "rank")
    max_tokens: int = field(
        default=96, metadata={"help": "Longer texts are cut to this many tokens."}
    )
    steps: int = field(
        default=240,
        metadata={"help": "Optimizer steps; in each of them every process reads one block."},
    )
    block_size: int = field(
        default=40,
        metadata={"help": "Answers per block; each is compared with all others of its block."},
    )
    learning_rate: float = borrowed(Supervised, "learning_rate", 6e-4)
    bank_size: int = field(
        default=128,
        metadata={
            "help": "Number of training posts that a sentence's own post is contrasted with."
        },
    )
    passing: float = field(
        default=0.98,
        metadata={
            "help": "Share of the posts by people who seek support that must be recognised as "
            "calling for empathy."
        },
    )
    max_dialogues: int = field(
        default=20000,
        metadata={
            "help": "Maximum number of exchanges taken from the dialogues, drawn at random; 0: all."
        },
    )
    eval_every: int = borrowed(Supervised, "eval_every", 40)
    save_every: int = borrowed(Supervised, "save_every", 40)
    report_to: str = borrowed(Shared, "report_to")
    seed: int = borrowed(Supervised, "seed")


def run(config: Config) -> dict[str, Any]:
    """Train the reader, fit the rules, save, measure; the figures."""
    from accelerate.utils import set_seed

    from rewards.reading.blocks import make_blocks
    from rewards.reading.reader import SentenceReader
    from rewards.reading.training import BlockLoss

    accelerator = supervised_accelerator("reader", config)
    logger.info("%s on %s", counted(accelerator.num_processes, "process"), accelerator.device)
    splits = labelled_splits(config)
    material = {split: material_of(config, splits, split) for split in ("train", "dev")}
    set_seed(config.seed)
    reader = SentenceReader(config.encoder, config.rank, config.max_tokens)
    reader.to(accelerator.device)
    sizes = {split: min(config.block_size, smallest(one)) for split, one in material.items()}
    best = train_supervised(
        "reader",
        config,
        accelerator,
        reader,
        BlockLoss(reader),
        make_blocks(material["train"], config.steps, sizes["train"], config.seed),
        make_blocks(material["dev"], 8, sizes["dev"], config.seed),
        batch_size=accelerator.num_processes,
        micro_batch_size=1,
        weight_decay=0.01,
        rate_factors={"map": 1.5, "worth": 1.5, "form": 1.5, "need": 1.5},
        average=0.98,
    )
    if not accelerator.is_main_process:
        return {}
    return finish(config, reader, splits, best.step)


def finish(
    config: Config, reader: SentenceReader, splits: dict[Split, list[Exchange]], step: int
) -> dict[str, Any]:
    """Fill the bank, fit the rules on dev, save, and measure what is on the disk."""
    from recipes.shared.sources import drawn
    from rewards.identifiers.evaluation import evaluate
    from rewards.identifiers.grounded.fit import fitted_grounding, rows_of, with_bars
    from rewards.identifiers.grounded.identifier import GroundedIdentifier
    from rewards.reading.critic import SecondOpinion
    from rewards.reading.form import fit_form, fit_need, fit_worth

    fit_form(reader, form_sentences(config, splits["train"]))
    reader.second = (
        SecondOpinion(config.second).to(reader.bank_KD.device) if config.second else None
    )
    fit_worth(reader, *worth_sentences(config, splits["train"]))
    posts = list(dict.fromkeys(e.seeker_post for e in splits["train"]))
    fit_need(reader, [*posts, *painful_posts(config)], calm_posts(config))
    bank = drawn(
        list({e.seeker_post: e for e in splits["train"]}.values()), config.bank_size, config.seed
    )
    reader.set_banks([e.seeker_post for e in bank], [e.response_post for e in bank])
    ours = counterfactuals(config, "dev")
    support = list(dict.fromkeys(e.seeker_post for e in [*splits["dev"], *ours]))
    rows = rows_of(splits["dev"], ours, config.seed)
    grounding = fitted_grounding(reader, rows, support, config.passing)
    identifier = GroundedIdentifier(reader, grounding)
    grounding = with_bars(identifier, splits["dev"])
    folder = Path(config.output) / "model"
    reader.save(folder, grounding=grounding.as_json())
    loaded = GroundedIdentifier.load(folder)
    figures: dict[str, Any] = {"step": step, "rows": {k: len(v) for k, v in splits.items()}}
    figures["kinds"] = kind_figures(loaded, ours)
    figures["dev"] = evaluate(loaded, splits["dev"])
    write_card(folder, config, figures, card(config, figures))
    tell_ending("reader", config.output)
    return figures
