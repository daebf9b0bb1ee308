"""Train the kindness model: would this sentence hurt somebody in distress?

A sentence encoder with LoRA and a linear head, on sentences written for it: hurtful ones of
thirteen kinds, openly rude and in friendly clothes, and kind ones near the line. The reward
`kindness` and the output gate of `rewriting rewrite` use it.

    python train.py kindness --output runs/kindness
    python train.py kindness --encoder minilm-l6 --learning_rate 1e-3
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import supervised_accelerator
from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.kindness_sentences import Sentence, sentences
from recipes.shared.settings import Shared
from recipes.shared.supervised import TUNED, Supervised, by_epochs, output_field, train_supervised
from rewriting.errors import UserError
from rewriting.runtime.settings import borrowed
from rewriting.statistics.classification import auroc
from rewriting.words import counted

if TYPE_CHECKING:
    from torch import Tensor

    from rewards.terms.kindness import KindnessModel

logger = logging.getLogger(__name__)


@dataclass
class Config:
    """Settings of `train.py kindness`."""

    output: str = output_field("kindness")
    data: str = field(
        default="",
        metadata={
            "help": "Folder with kindness_train.jsonl, kindness_dev.jsonl and kindness_test.jsonl; "
            "'': the bundled files.",
            "folder": True,
        },
    )
    counterfactuals: str = field(
        default="sample:counterfactuals_train",
        metadata={
            "help": "Source of further training sentences, hurtful ones and kind ones; '': none."
        },
    )
    train_on_dev: bool = field(
        default=False,
        metadata={
            "help": "Also train on the dev part. Then set --bar to the one chosen in a run without "
            "it."
        },
    )
    encoder: str = borrowed(Supervised, "encoder", "mpnet-base")
    layers: int = field(
        default=9,
        metadata={
            "help": "Number of encoder layers that are used, from the first; 0: all. The last "
            "layers of a sentence encoder tell topics, not tone."
        },
    )
    rank: int = borrowed(Supervised, "rank")
    max_tokens: int = field(
        default=64, metadata={"help": "Longer sentences are cut to this many tokens."}
    )
    epochs: int = field(default=3, metadata={"help": "Passes over the training sentences."})
    batch_size: int = field(
        default=32, metadata={"help": "Sentences per optimizer step, over all processes."}
    )
    learning_rate: float = borrowed(Supervised, "learning_rate", 4e-4)
    smoothing: float = field(
        default=0.04,
        metadata={
            "help": "Label smoothing: the target is 1 minus this for a hurtful sentence, and half "
            "of this for a kind one."
        },
    )
    false_alarms: float = field(
        default=0.03,
        metadata={"help": "Largest share of kind dev sentences that the gate may stop."},
    )
    bar: float = field(
        default=0.0,
        metadata={
            "help": "Probability of being hurtful from which the gate stops a sentence; 0: chosen "
            "on the dev part."
        },
    )
    test: bool = field(
        default=False,
        metadata={"help": "Also measure the test part; keep a list of every time you do."},
    )
    report_to: str = borrowed(Shared, "report_to")
    seed: int = borrowed(Supervised, "seed")


def run(config: Config) -> dict[str, Any]:
    """Train the model, choose the bar, save, measure; the figures."""
    from accelerate.utils import set_seed

    from rewards.terms.kindness import KindnessModel

    accelerator = supervised_accelerator("kindness", config)
    logger.info("%s on %s", counted(accelerator.num_processes, "process"), accelerator.device)
    dev = sentences(config.data, "dev")
    rows = sentences(config.data, "train") + counterfactual_sentences(config.counterfactuals)
    rows += dev if config.train_on_dev else []
    set_seed(config.seed)
    model = KindnessModel(config.encoder, config.rank, config.max_tokens, config.layers)
    model.to(accelerator.device)
    best = train_supervised(
        "kindness",
        config,
        accelerator,
        model,
        lambda batch: hurt_loss(model, batch, config.smoothing),
        rows,
        dev,
        chosen_afterwards=("bar", "test"),
        **by_epochs(config, len(rows)),
        **TUNED,
    )
    if not accelerator.is_main_process:
        return {}
    folder = Path(config.output) / "model"
    model.save(folder)
    # The bar belongs to the weights on the disk, which are rounded to half precision.
    model.bar = config.bar or bar_for(KindnessModel.load(folder), dev, config.false_alarms)
    model.save(folder)
    loaded = KindnessModel.load(folder)
    figures: dict[str, Any] = {"step": best.step, "sentences": len(rows), "bar": loaded.bar}
    figures |= {"dev": measure(loaded, dev)}
    if config.test:
        figures["test"] = measure(loaded, sentences(config.data, "test"))
    write_card(folder, config, figures, card(config, figures))
    tell_ending("kindness", config.output)
    return figures


def counterfactual_sentences(source: str) -> list[Sentence]:
    """Hurtful sentences of the counterfactuals, and those that are kind."""
    from rewards.reading.blocks import sentences_by_kind
    from rewriting.data import load_exchanges

    return [
        Sentence(text, kind == "hurtful", kind)
        for exchange in (load_exchanges(source) if source else ())
        for kind, text in sentences_by_kind(exchange).items()
        if kind == "hurtful" or kind.endswith(("_strong", "_weak"))
    ]


def hurt_loss(
    model: KindnessModel, rows: Sequence[Sentence], smoothing: float
) -> tuple[Tensor, float]:
    """The sum of the cross-entropies, and the number of sentences."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    logits_N = model([row.text for row in rows])
    hurts_N = torch.tensor([float(row.hurts) for row in rows], device=logits_N.device)
    target_N = hurts_N * (1 - smoothing) + (1 - hurts_N) * smoothing / 2
    return binary_cross_entropy_with_logits(logits_N, target_N, reduction="sum"), float(len(rows))


def bar_for(model: KindnessModel, rows: Sequence[Sentence], false_alarms: float) -> float:
    """The lowest bar that stops no more than this share of the kind sentences."""
    kind = sorted(model.probabilities([row.text for row in rows if not row.hurts]))
    if not kind:
        raise UserError("the bar is chosen on kind dev sentences, and the dev part has none.")
    allowed = min(int(false_alarms * len(kind)), len(kind) - 1)
    return kind[len(kind) - 1 - allowed] + 1e-6


def measure(model: KindnessModel, rows: Sequence[Sentence]) -> dict[str, Any]:
    """AUROC, what the gate stops at its bar, and what it misses, kind by kind; in percent."""
    found = model.probabilities([row.text for row in rows])
    stopped = [probability >= model.bar for probability in found]
    kinds = {row.kind: 0.0 for row in rows}
    for kind in kinds:
        own = [stop for row, stop in zip(rows, stopped, strict=True) if row.kind == kind]
        kinds[kind] = 100 * sum(own) / len(own)

    def share(hurts: bool) -> float:
        own = [stop for row, stop in zip(rows, stopped, strict=True) if row.hurts == hurts]
        return 100 * sum(own) / max(1, len(own))

    return {
        "auroc": 100 * auroc([row.hurts for row in rows], found),
        "stopped_hurtful": share(True),
        "stopped_kind": share(False),
        "stopped_by_kind": kinds,
        "n": len(rows),
    }


def card(config: Config, figures: dict[str, Any]) -> str:
    dev = figures["dev"]
    kinds = "\n".join(f"| {kind} | {one:.0f} |" for kind, one in dev["stopped_by_kind"].items())
    return CARD.format(
        encoder=config.encoder,
        layers=f", its first {config.layers} layers," if config.layers else "",
        rank=config.rank,
        sentences=figures["sentences"],
        on_dev=" (the dev part among them, so dev figures flatter)" if config.train_on_dev else "",
        bar=figures["bar"],
        command=command("kindness", config),
        kinds=kinds,
        **{name: dev[name] for name in ("auroc", "stopped_hurtful", "stopped_kind", "n")},
    )


CARD = """# kindness: would this sentence hurt somebody in distress?

`{encoder}`{layers} with LoRA of rank {rank} and a linear head, behind the reward `kindness` and the
output gate, which stops a new sentence from a probability of {bar:.3f} on.

- Trained on {sentences:,} sentences of our own{on_dev}; the bundled kindness and counterfactual
  texts (rewriting/sample/COUNTERFACTUALS.md). Test sentences were written apart.
- Command: `{command}`

## On the dev part ({n} sentences, other writers, on whom step and bar were chosen)
AUROC {auroc:.1f}; at the bar {stopped_hurtful:.1f} % of hurtful sentences are stopped and
{stopped_kind:.1f} % of kind ones.

| kind | % stopped |
|---|---:|
{kinds}

## Limits
It reads one sentence without the post, so a sentence that hurts only there passes. It misses much
that is hurtful in friendly words. A person has to read what goes out. English only.
"""
