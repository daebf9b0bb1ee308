"""Train the reader of a sentence under a post: the model behind `grounded` and `contrast`.

It learns to tell the answer that a person gave to a post from answers to other posts, from stock
sentences, nonsense and misfits, and what kind of empathy a sentence has (rewards/reading/). Then
the rules that turn this into levels are fitted on the dev part.

    python train.py reader --data data/epitome,sample --dialogues data/empathetic_dialogues
    python evaluate.py audit --data sample:test --rewards '{contrast: 1}'
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import supervised_accelerator
from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared
from recipes.shared.supervised import Supervised, output_field, train_supervised
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.runtime.settings import borrowed

if TYPE_CHECKING:
    from rewards.reading.blocks import Material
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
    logger.info("%d process(es) on %s", accelerator.num_processes, accelerator.device)
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


def labelled_splits(config: Config) -> dict[Split, list[Exchange]]:
    """Exchanges with all three levels, without replies that are known not to fit their post."""
    from recipes.shared.sources import load_splits

    return {
        split: [
            exchange
            for exchange in rows
            if exchange.empathy is not None
            and (exchange.extra.get("contrast") or {}).get("fits", True)
        ]
        for split, rows in load_splits(config.data).items()
    }


def counterfactuals(config: Config, split: str) -> list[Exchange]:
    from rewriting.data import load_exchanges

    return list(load_exchanges(f"{config.counterfactuals}_{split}"))


def form_sentences(config: Config, labelled: list[Exchange]) -> list[Any]:
    """Sentences with the levels of their form; those of the counterfactuals count three times."""
    from rewards.reading.blocks import KIND_LEVELS, labelled_answers, sentences_by_kind

    real = [(one.sentence, one.levels, 1.0) for one in labelled_answers(labelled)]
    ours = [
        (text, KIND_LEVELS[kind], 3.0)
        for exchange in counterfactuals(config, "train")
        for kind, text in sentences_by_kind(exchange).items()
        if kind in KIND_LEVELS
    ]
    return [*real, *ours]


def worth_sentences(config: Config, labelled: list[Exchange]) -> tuple[list[str], list[Any]]:
    """Strong sentences that people said, stock ones left out; and decoys in groups, with the share
    of each group."""
    from rewards.audit.stock import is_stock
    from rewards.identifiers.seed_sentences import SEEDS
    from rewards.reading.blocks import STRONG, labelled_answers, plain_answers, sentences_by_kind

    rows = [sentences_by_kind(exchange) for exchange in counterfactuals(config, "train")]
    seeds = [seed for group in SEEDS.values() for seed in group]
    strong = [one.sentence for one in labelled_answers(labelled) if max(one.levels or (0,)) == 2]
    real = [sentence for sentence in strong if not is_stock(sentence, seeds)]
    answers = real + [row[kind] for row in rows for kind in STRONG]
    weak = [text for row in rows for kind, text in row.items() if kind.endswith("_weak")]
    everyday = [one.sentence for one in plain_answers(calm_exchanges(config))]
    return answers, [
        (0.5, weak),
        (0.05, seeds),
        (0.2, [row["nonsense"] for row in rows]),
        (0.1, [row[kind] for row in rows for kind in ("hurtful", "advice")]),
        (0.15, everyday),
    ]


def material_of(config: Config, splits: dict[Split, list[Exchange]], split: Any) -> Material:
    """What blocks of a split are drawn from."""
    from rewards.identifiers.seed_sentences import SEEDS
    from rewards.reading import blocks
    from rewriting.data import split_of

    ours = counterfactuals(config, split)
    answers = blocks.labelled_answers(splits[split])
    carrying = [one for one in answers if one.levels and max(one.levels)]
    sources = [(0.45, carrying), (0.15, answers), (0.4, blocks.counterfactual_answers(ours))]
    if config.dialogues:
        plain = dialogue_answers(config, split)
        sources = [(0.35, carrying), (0.1, answers), (0.25, sources[2][1]), (0.3, plain)]
    empty = [share for share, rows in sources if not rows]
    if empty:
        raise UserError(f"{config.data}: too little data for the {split} part.")
    seeds = dict(
        zip(("reaction_weak", "interpretation_weak", "question_weak"), SEEDS.values(), strict=True)
    )
    chosen = [e for e in calm_exchanges(config) if (split_of(e) == "dev") == (split == "dev")]
    return blocks.Material(
        sources,
        blocks.decoys_of(ours, seeds),
        [one.sentence for one in blocks.plain_answers(chosen)],
        [exchange.seeker_post for exchange in chosen],
    )


def calm_exchanges(config: Config) -> list[Exchange]:
    from recipes.shared.sources import sources_of
    from rewriting.data import load_exchanges

    return [e for source in sources_of(config.calm) for e in load_exchanges(source)]


def calm_posts(config: Config) -> list[str]:
    """Posts that call for no empathy: the calm sources, and pleasant dialogues."""
    from rewards.identifiers.in_context.training import PLEASANT

    return [e.seeker_post for e in calm_exchanges(config)] + first_turns(config, PLEASANT, 1500)


def painful_posts(config: Config) -> list[str]:
    """Posts of the counterfactuals, and of painful dialogues."""
    from rewards.identifiers.in_context.training import PAINFUL

    ours = [e.seeker_post for e in counterfactuals(config, "train")]
    return ours + first_turns(config, PAINFUL, 800)


def first_turns(config: Config, emotions: Collection[str], most: int) -> list[str]:
    """At most so many first turns of the dialogues that tell of one of these emotions."""
    from recipes.shared.sources import drawn, load_splits

    if not config.dialogues:
        return []
    rows = [
        e.seeker_post
        for e in load_splits(config.dialogues)["train"]
        if e.extra.get("emotion") in emotions and not e.history
    ]
    return drawn(list(dict.fromkeys(rows)), most, config.seed)


def dialogue_answers(config: Config, split: str) -> list[Any]:
    """Sentences of unlabelled exchanges about painful experiences, where the source says so."""
    from recipes.shared.sources import drawn, load_splits
    from rewards.identifiers.in_context.training import PAINFUL
    from rewards.reading.blocks import plain_answers

    found = []
    rows = load_splits(config.dialogues)[split]  # type: ignore[index]
    rows = [e for e in rows if e.extra.get("emotion") in (None, *PAINFUL)]
    for exchange in drawn(rows, config.max_dialogues, config.seed):
        found += plain_answers([exchange])
    return found


def smallest(material: Material) -> int:
    """How many different posts the smallest source has: no block can be larger."""
    return min(len({answer.post for answer in answers}) for _, answers in material.sources)


def kind_figures(identifier: Any, exchanges: list[Exchange]) -> dict[str, dict[str, float]]:
    """Per kind of counterfactual sentence: mean contrast, and the mean expected level it earns."""
    from rewards.reading.blocks import sentences_by_kind

    figures: dict[str, dict[str, float]] = {}
    for kind in sentences_by_kind(exchanges[0]):
        pairs = [(e.seeker_post, sentences_by_kind(e)[kind]) for e in exchanges]
        readings = identifier.reader.read(pairs)
        found = identifier.assess([post for post, _ in pairs], [text for _, text in pairs])
        figures[kind] = {"contrast": sum(one.contrast for one in readings) / len(pairs)}
        for mechanism in MECHANISMS:
            levels = [one.judgements[mechanism].expected_level for one in found]
            figures[kind][mechanism] = sum(levels) / len(levels)
    return figures


def card(config: Config, figures: dict[str, Any]) -> str:
    names = ("accuracy", "macro_f1", "token_f1", "iou_f1")
    dev = [
        f"| {mechanism} | "
        + " | ".join(f"{figures['dev'][mechanism][n]:.1f}" for n in names)
        + " |"
        for mechanism in MECHANISMS
    ]
    kinds = [
        f"| {kind} | {one['contrast']:.2f} | "
        + " | ".join(f"{one[mechanism]:.2f}" for mechanism in MECHANISMS)
        + " |"
        for kind, one in figures["kinds"].items()
    ]
    return CARD.format(
        encoder=config.encoder,
        second=(
            f"Contrast is the mean of its own opinion and that of the frozen `{config.second}`."
            if config.second
            else "Nobody else is asked about contrast."
        ),
        rank=config.rank,
        data=config.data.replace(",", ", "),
        dialogues=config.dialogues or "none",
        step=figures["step"],
        command=command("reader", config),
        dev="\n".join(dev),
        kinds="\n".join(kinds),
    )


CARD = """# reader: does this sentence answer this post, and what kind of empathy is it?

`{encoder}` with LoRA of rank {rank} and four small heads. Behind the identifier `grounded` and the
reward term `contrast`.

- Labelled data: {data} (split by seeker, `rewriting.data.split_of`); dialogues: {dialogues};
  counterfactuals of our own (rewriting/sample/COUNTERFACTUALS.md), their writers parted: four
  for training, one for the rules, one for test.
- {second}
- Kept: the step with the lowest dev loss, {step}. The rules for levels and their bars are fitted on
  the dev part, so the figures below flatter; docs/results/reward.md says what is known beyond them.
- Command: `{command}`

## What counterfactual sentences earn (dev writer)
Mean contrast in nats, and the mean expected level, alone under their post.

| kind | contrast | emotional reactions | interpretations | explorations |
|---|---:|---:|---:|---:|
{kinds}

## Levels and rationales on labelled dev exchanges
| mechanism | accuracy | macro-F1 | token-F1 | IOU-F1 |
|---|---:|---:|---:|---:|
{dev}

## Limits
It reads sentence by sentence, so a story that is told over several counts by its best sentence.
It knows topics and tones better than facts: a sentence that presupposes a thing the post does not
mention may pass. English only; not validated for clinical use.
"""
