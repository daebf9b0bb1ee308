"""Train the crisis reader: does this post read like a crisis, and like which kind?

A sentence encoder with LoRA and two linear heads, on the crisis corpus: messages in which somebody
may be in danger, and benign look-alikes. The safety gate asks it beside its rules (docs/safety.md).

    python train.py crisis --output runs/crisis
    python train.py crisis --rank 4 --epochs 4
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import supervised_accelerator
from recipes.shared.cards import write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared
from recipes.shared.supervised import TUNED, Supervised, by_epochs, output_field, train_supervised
from recipes.train.crisis.figures import card, choose_bars, fit_temperature, measure
from recipes.train.crisis.messages import (
    Message,
    messages,
    mixed_copies,
    noisy_copies,
    ordinary_posts,
)
from rewriting.runtime.settings import borrowed
from rewriting.words import counted

if TYPE_CHECKING:
    from torch import Tensor

    from rewriting.safety.reader.crisis_reader import CrisisReader

logger = logging.getLogger(__name__)


@dataclass
class Config:
    """Settings of `train.py crisis`."""

    output: str = output_field("crisis")
    data: str = field(
        default="",
        metadata={
            "help": "Folder with crisis_train.jsonl, crisis_dev.jsonl and crisis_test.jsonl; '': "
            "the bundled files.",
            "folder": True,
        },
    )
    ordinary: bool = field(
        default=True,
        metadata={
            "help": "Also train on bundled ordinary posts, as benign messages; some of them are "
            "held out to choose the bars (decision thresholds)."
        },
    )
    noisy: float = field(
        default=0.3,
        metadata={
            "help": "Share of messages that are also trained on as a copy with spelling noise."
        },
    )
    mixed: float = field(
        default=0.1,
        metadata={
            "help": "Share of messages that are also trained on as a copy joined with an ordinary "
            "post."
        },
    )
    encoder: str = borrowed(Supervised, "encoder")
    layers: int = borrowed(Supervised, "layers")
    rank: int = borrowed(Supervised, "rank", 6)
    max_tokens: int = field(
        default=128,
        metadata={
            "help": "Maximum length of a window that a message is read in, in tokens; longer ones "
            "are cut."
        },
    )
    epochs: int = field(default=3, metadata={"help": "Passes over the training messages."})
    batch_size: int = field(
        default=32, metadata={"help": "Messages per optimizer step, over all processes."}
    )
    learning_rate: float = borrowed(Supervised, "learning_rate")
    smoothing: float = field(
        default=0.02,
        metadata={
            "help": "Label smoothing: the target is 1 minus this for a crisis, and this for a "
            "benign message."
        },
    )
    kind_weight: float = field(
        default=0.3,
        metadata={
            "help": "Weight of the loss for the kind of crisis, relative to the loss for crisis or "
            "benign."
        },
    )
    false_alarms: float = field(
        default=0.04,
        metadata={
            "help": "Largest share of benign dev messages, and of bundled posts about everyday "
            "trouble, that the gate may hold back."
        },
    )
    ordinary_alarms: float = field(
        default=0.01,
        metadata={"help": "Largest share of bundled ordinary posts that the gate may hold back."},
    )
    test: bool = field(
        default=False,
        metadata={
            "help": "Also measure the test part and the other languages; keep a list of every time "
            "you do."
        },
    )
    report_to: str = borrowed(Shared, "report_to")
    seed: int = borrowed(Supervised, "seed")


def run(config: Config) -> dict[str, Any]:
    """Train the reader, calibrate it, choose its bars, save, measure; the figures."""
    from accelerate.utils import set_seed

    from rewriting.safety.reader.crisis_reader import CrisisReader

    accelerator = supervised_accelerator("crisis", config)
    logger.info("%s on %s", counted(accelerator.num_processes, "process"), accelerator.device)
    learnt, kept = ordinary_posts() if config.ordinary else ([], [])
    dev = messages(config.data, "dev")
    rows = messages(config.data, "train") + learnt
    rows += mixed_copies(rows, learnt, config.mixed, config.seed)
    rows += noisy_copies(rows, config.noisy, config.seed)
    set_seed(config.seed)
    reader = CrisisReader(config.encoder, config.rank, config.max_tokens, config.layers)
    reader.to(accelerator.device)
    best = train_supervised(
        "crisis",
        config,
        accelerator,
        reader,
        lambda batch: crisis_loss(reader, batch, config.smoothing, config.kind_weight),
        rows,
        dev,
        chosen_afterwards=CHOSEN_AFTERWARDS,
        **by_epochs(config, len(rows)),
        **TUNED,
    )
    if not accelerator.is_main_process:
        return {}
    folder = Path(config.output) / "model"
    reader.save(folder)
    # Temperature and bars belong to the weights on the disk, rounded to half precision.
    reader.temperature = fit_temperature(CrisisReader.load(folder), dev)
    reader.save(folder)
    reader.bars = choose_bars(
        CrisisReader.load(folder), dev, kept, config.false_alarms, config.ordinary_alarms
    )
    reader.save(folder)
    loaded = CrisisReader.load(folder)
    figures: dict[str, Any] = {"step": best.step, "messages": len(rows)}
    figures |= {"temperature": loaded.temperature, "bars": asdict(loaded.bars)}
    figures["dev"] = measure(loaded, dev, kept)
    if config.test:
        figures["test"] = measure(loaded, messages(config.data, "test"))
        figures["languages"] = measure(loaded, messages(config.data, "languages"))
    write_card(folder, config, figures, card(config, figures))
    tell_ending("crisis", config.output)
    return figures


CHOSEN_AFTERWARDS = ("false_alarms", "ordinary_alarms", "test")


def crisis_loss(
    reader: CrisisReader, rows: Sequence[Message], smoothing: float, kind_weight: float
) -> tuple[Tensor, float]:
    """The sum of the cross-entropies of crisis and kind, and the number of messages."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

    from rewriting.safety.reader.crisis_reader import KINDS

    logits_N, kinds_NK = reader([row.text for row in rows])
    crisis_N = torch.tensor([float(row.crisis) for row in rows], device=logits_N.device)
    target_N = crisis_N * (1 - 2 * smoothing) + smoothing
    loss = binary_cross_entropy_with_logits(logits_N, target_N, reduction="sum")
    named = [number for number, row in enumerate(rows) if row.kind]
    if named:
        kinds_M = torch.tensor([KINDS.index(rows[n].kind) for n in named], device=logits_N.device)
        loss = loss + kind_weight * cross_entropy(kinds_NK[named], kinds_M, reduction="sum")
    return loss, float(len(rows))
