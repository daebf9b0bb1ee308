"""Fit the gate of context: empathy counts only as far as it fits the post.

Two small rules beside an identifier (rewards/identifiers/in_context/gate.py): does the post call
for empathy, and do the words stand in their place? The identifier `in-context` and the reward
`empathy_in_context` use them.

    python train.py context --data data/epitome,sample --output runs/context \\
        --neutral sample:everyday,sample:calm,data/empathetic_dialogues/train.csv
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import supervised_accelerator, track_figures
from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared
from recipes.shared.supervised import Supervised
from rewriting.errors import UserError
from rewriting.runtime.settings import borrowed

if TYPE_CHECKING:
    from rewards.identifiers.in_context.training import Material

logger = logging.getLogger(__name__)
FEWEST_POSTS = 20  # of each side
TRAINING_CACHE = 1_000_000  # texts: every one of the data is embedded once


@dataclass
class Config:
    """Settings of `train.py context`."""

    output: str = field(
        default="runs/context", metadata={"help": "Folder for the fitted gate and its model card."}
    )
    data: str = field(
        default="sample",
        metadata={
            "help": "Labelled replies to people who seek support: files, folders, hub ids or "
            "sample, separated by commas."
        },
    )
    neutral: str = field(
        default="sample:everyday,sample:calm",
        metadata={
            "help": "Exchanges that call for no empathy. From EmpatheticDialogues, turns with "
            "pleasant emotions; painful ones count as calling for empathy."
        },
    )
    identifier: str = field(
        default="grounded",
        metadata={"help": "Identifier that the gate is fitted for and used with."},
    )
    encoder: str = borrowed(Supervised, "sentence_encoder")
    max_neutral: int = field(
        default=3000,
        metadata={"help": "Maximum number of exchanges taken from each neutral source; 0: all."},
    )
    max_painful: int = field(
        default=500,
        metadata={
            "help": "Maximum number of painful posts taken from each neutral source; 0: all."
        },
    )
    max_replies: int = field(
        default=800,
        metadata={
            "help": "Maximum number of empathic replies taken from each source to learn fit from; "
            "0: all."
        },
    )
    passing: float = field(
        default=0.98,
        metadata={
            "help": "Share of the posts by people who seek support that must be recognised as "
            "calling for empathy."
        },
    )
    sharpness: float = field(
        default=2.0,
        metadata={
            "help": "Factor on the logits of fit: the higher, the more sharply fitting replies are "
            "told from others; 1: probabilities as fitted."
        },
    )
    report_to: str = borrowed(Shared, "report_to")
    seed: int = field(default=0, metadata={"help": "The same seed draws the same rows."})


def run(config: Config) -> dict[str, Any]:
    """Fit and save the gate; how its rules do on posts that they had not seen."""
    from recipes.shared.sources import drawn
    from rewards.identifiers.in_context.training import fit_gate
    from rewards.identifiers.named import load_identifier
    from rewards.identifiers.seed_sentences import SentenceVectors
    from rewriting.runtime.models.named import load_sentence_encoder
    from rewriting.runtime.seeds import derive_seed

    if not 0 < config.passing < 1:
        raise UserError(f"passing is a share between 0 and 1, not {config.passing}.")
    if not config.sharpness > 0:
        raise UserError(f"sharpness is above 0, not {config.sharpness}.")
    accelerator = supervised_accelerator("context", config)
    material = material_of(config)
    replies = []
    for source, exchanges in material.support.items():
        empathic = [exchange for exchange in exchanges if exchange.empathy]
        replies += drawn(empathic, config.max_replies, derive_seed(config.seed, source))
    if len({exchange.seeker_post for exchange in replies}) < 2:
        raise UserError(f"{config.data} holds too few replies that are labelled as empathic.")
    check_sizes(material)
    logger.info("learning from %d empathic replies out of %d", len(replies), len(material.replies))
    vectors = SentenceVectors(
        load_sentence_encoder(config.encoder),
        name=config.encoder,
        batch_size=64,
        remember_all=True,
        cache_size=TRAINING_CACHE,
    )
    identifier = load_identifier(config.identifier)
    gate, figures = fit_gate(
        identifier,
        vectors,
        material,
        replies,
        passing=config.passing,
        sharpness=config.sharpness,
    )
    track_figures(accelerator, figures)
    folder = Path(config.output) / "model"
    gate.save(folder, identifier=config.identifier)
    write_card(folder, config, figures, card(config, figures))
    for source, one in figures["need"].items():
        logger.info(
            "%5.1f %% of %d posts of %s are recognised as calling for empathy",
            one["passing"],
            one["posts"],
            source,
        )
    for text, auroc in figures["fit_auroc"].items():
        logger.info(
            "AUROC of the fit of the %s, replies in place against moved ones: %.1f", text, auroc
        )
    if accelerator.is_main_process:
        tell_ending("context", config.output)
    return figures


def check_sizes(material: Material) -> None:
    """The rules of need are fitted on some posts and tried on others, five times over."""
    from rewards.identifiers.in_context.training import Posts

    needs = Posts.of(material).needs
    sides = {"of support": sum(needs), "that call for no empathy": len(needs) - sum(needs)}
    for side, count in sides.items():
        if count < FEWEST_POSTS:
            raise UserError(
                f"{count} different posts {side} are too few: at least {FEWEST_POSTS} are needed."
            )


def material_of(config: Config) -> Material:
    """Train and dev rows of support, and the neutral sources, parted by emotion where they have
    one."""
    from recipes.shared.sources import drawn, parts_of, sources_of
    from rewards.identifiers.in_context.training import PAINFUL, PLEASANT, Material
    from rewriting.data import load_exchanges, without_duplicates
    from rewriting.runtime.seeds import derive_seed

    support, neutral, painful = {}, {}, []
    for source in sources_of(config.data):
        parts = parts_of(source)
        support[source] = [*parts["train"], *parts["dev"]]
    for source in sources_of(config.neutral):
        rows = list(without_duplicates(load_exchanges(source)))
        seed = derive_seed(config.seed, source)
        calm = [e.seeker_post for e in rows if e.extra.get("emotion", "content") in PLEASANT]
        neutral[source] = drawn(calm, config.max_neutral, seed)
        hurt = [e.seeker_post for e in rows if e.extra.get("emotion") in PAINFUL and not e.history]
        painful += drawn(list(dict.fromkeys(hurt)), config.max_painful, seed)
    empty = [source for source, rows in (support | neutral).items() if not rows]
    if empty or not support or not neutral:
        raise UserError(f"no posts to learn from: {', '.join(empty) or '--data or --neutral'}.")
    return Material(support, neutral, painful)


def card(config: Config, figures: dict[str, Any]) -> str:
    lines = [
        f"| {source} | {one['posts']:,} | {one['passing']:.1f} |"
        for source, one in figures["need"].items()
    ]
    return CARD.format(
        identifier=config.identifier,
        encoder=config.encoder,
        sharpness=config.sharpness,
        command=command("context", config),
        pairs=figures["fit_pairs"],
        **figures["fit_auroc"],
        passing="\n".join(lines),
    )


CARD = """# context: does this empathy fit this post?

A gate beside the identifier `{identifier}`, on the frozen sentence encoder `{encoder}`; together
they are the identifier `in-context`, and the reward `empathy_in_context` is the change by it.

- **Need**: a linear rule on the embedded post, its words and pairs of words, whether it tells of
  trouble or pain. Below its bar no level is called.
- **Fit**: the centred similarity of the post with the reply, and with the sentences that carry the
  mechanism. The probabilities of weak and strong are multiplied by need and by both fits, whose
  logits were multiplied by {sharpness:g}.
- Command: `{command}`

## On posts that the rules had not seen (five folds)
| source | posts | % that pass the bar of need |
|---|---:|---:|
{passing}

AUROC of fit, empathic replies in place against the same moved to another post: {reply:.1f} of the
reply, {words:.1f} of the words that carry the mechanism ({pairs:,} of each, train and dev part).
The probe on test data is in docs/results/reward.md.

## Limits
Support forums and our sample are what "trouble" was learnt from: a short remark about a small
trouble in a chat may not pass. Good news and small talk do not pass on purpose, though sharing joy
may be empathic. Fit sees topics and feelings in common; a sentence that says the wrong thing about
the right topic fits. Whether a post of support that says little passes is chance. English only.
"""
