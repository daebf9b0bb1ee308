"""Train the alignment model: which of a peer's words meet which of a person's appraisals?

A Siamese sentence encoder over the spans of both, with one aligned pair to eleven that are not
(ALOE, arXiv 2405.00948): pairs of the same exchange, and replies moved to other people's posts.
Advice has a rule and a threshold of its own; thresholds are set on dev.

    accelerate launch train.py alignment --output runs/alignment
    accelerate launch train.py alignment --data aloe.json --rank 8 --steps 200 --output runs/aloe
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
from recipes.shared.settings import Shared
from recipes.shared.supervised import Supervised, output_field, train_supervised
from recipes.shared.tables import cell
from rewriting.errors import UserError
from rewriting.runtime.settings import borrowed
from rewriting.words import counted

if TYPE_CHECKING:
    from torch import Tensor

    from rewards.appraisals.alignment.pairs import Grid

logger = logging.getLogger(__name__)


@dataclass
class Config:
    """Settings of `train.py alignment`."""

    output: str = output_field("alignment")
    data: str = borrowed(Supervised, "appraised_data")
    encoder: str = borrowed(Supervised, "sentence_encoder")
    rank: int = field(
        default=0,
        metadata={"help": "Rank of the LoRA matrices in the encoder; 0: the encoder stays frozen."},
    )
    negatives: int = field(
        default=11,
        metadata={"help": "Number of pairs that are not aligned, for each aligned pair."},
    )
    steps: int = borrowed(Supervised, "steps")
    batch_size: int = field(
        default=64,
        metadata={
            "help": "Exchanges per optimizer step, over all processes; moved replies count as "
            "exchanges too."
        },
    )
    micro_batch_size: int = borrowed(Supervised, "micro_batch_size", 16)
    learning_rate: float = field(
        default=0.02, metadata={"help": "Peak learning rate of the head, after the linear warm-up."}
    )
    encoder_factor: float = field(
        default=0.01,
        metadata={"help": "Learning rate of the encoder, as a multiple of the head's."},
    )
    weight_decay: float = borrowed(Supervised, "weight_decay", 0.02)
    eval_every: int = borrowed(Supervised, "eval_every", 25)
    save_every: int = borrowed(Supervised, "save_every", 100)
    report_to: str = borrowed(Shared, "report_to")
    seed: int = borrowed(Supervised, "seed")


def run(config: Config) -> dict[str, Any]:
    """Train, set the thresholds, save and measure; the figures."""
    from accelerate.utils import set_seed
    from torch import nn

    from rewards.appraisals.alignment.model import AlignmentHead, SiameseAlignment
    from rewards.appraisals.evaluation import fit_thresholds
    from rewards.appraisals.sentence_states import SentenceStates
    from rewriting.runtime.models.named import load_sentence_encoder

    accelerator = supervised_accelerator("alignment", config)
    logger.info("%s on %s", counted(accelerator.num_processes, "process"), accelerator.device)
    parts = split_grids(config.data, config.negatives, config.seed)
    rows = {name: [*own, *moved] for name, (own, moved) in parts.items()}
    sizes = {name: len(found) for name, found in rows.items()}
    logger.info(
        "%d exchanges to train on, moved replies included; %d for dev", sizes["train"], sizes["dev"]
    )
    set_seed(config.seed)
    states = SentenceStates.load(config.encoder, rank=config.rank).to(accelerator.device)
    head = AlignmentHead().to(accelerator.device)
    model = SiameseAlignment(states, head)
    best = train_supervised(
        "alignment",
        config,
        accelerator,
        nn.ModuleDict({"states": states, "head": head}),
        lambda grids: grid_loss(model, grids),
        rows["train"],
        rows["dev"],
        rate_factors={"states.": config.encoder_factor},
    )
    if not accelerator.is_main_process:
        return {}
    if config.rank:
        states.forget()
    fit_thresholds(model, rows["dev"])
    folder = Path(config.output) / "model"
    model.save(folder)
    figures: dict[str, Any] = {
        "step": best.step,
        "thresholds": model.thresholds,
        "pairs": {name: sum(grid.size for grid in found) for name, found in rows.items()},
        "aligned": {name: sum(len(g.aligned) for g in found) for name, found in rows.items()},
        "results": compared(model, load_sentence_encoder(config.encoder), config.encoder, parts),
    }
    write_card(folder, config, figures, card(config, figures))
    tell_ending("alignment", config.output)
    return figures


def split_grids(
    data: str, negatives: int, seed: int, splits: Sequence[str] = ("train", "dev", "test")
) -> dict[str, tuple[list[Grid], list[Grid]]]:
    """Per split the exchanges as they are, and the moved replies that fill the negatives up."""
    from rewards.appraisals.alignment.pairs import grids_of, moved_grids
    from rewriting.data.appraisals import load_appraisals

    exchanges = list(load_appraisals(data))
    found = {}
    for name in splits:
        own = grids_of([exchange for exchange in exchanges if exchange.split == name])
        if not any(grid.aligned for grid in own):
            raise UserError(f"{data}: the {name} part holds no aligned pair.")
        found[name] = (own, moved_grids(own, negatives=negatives, seed=seed))
    return found


def grid_loss(model: Any, grids: Sequence[Grid]) -> tuple[Tensor, float]:
    """Cross-entropy of aligned or not, summed over the pairs of the grids, and their number."""
    import torch

    from rewards.appraisals.alignment.model import texts_of

    texts = [texts_of(grid) for grid in grids]
    together = list(dict.fromkeys(text for own in texts for text in own))
    if model.states.rank:
        vectors = model.states(together)[:, -1]
    else:
        vectors = model.states.embed(together)[:, -1]
    place = {text: number for number, text in enumerate(together)}
    logits = [
        model.logits(grid, vectors[[place[text] for text in own]]).flatten()
        for grid, own in zip(grids, texts, strict=True)
    ]
    gold = [torch.tensor(grid.gold(), dtype=torch.float32) for grid in grids]
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        torch.cat(logits), torch.cat(gold), reduction="sum"
    )
    return losses, float(sum(grid.size for grid in grids))


def compared(
    model: Any, encoder: Any, name: str, parts: dict[str, tuple[list[Grid], list[Grid]]]
) -> list[dict[str, Any]]:
    """The model and plain similarity, its thresholds set on the same dev rows, on dev and test."""
    from rewards.appraisals.alignment.model import SimilarityAlignment
    from rewards.appraisals.evaluation import alignment_figures, fit_thresholds

    plain = SimilarityAlignment(encoder, name=f"similarity ({name})")
    fit_thresholds(plain, [*parts["dev"][0], *parts["dev"][1]])
    return [
        {
            "system": system.name,
            "split": split,
            "pairs": pairs,
            "figures": alignment_figures(system, grids),
        }
        for split in ("dev", "test")
        for pairs, grids in tables(parts[split]).items()
        for system in (model, plain)
    ]


def tables(part: tuple[list[Grid], list[Grid]]) -> dict[str, list[Grid]]:
    """The two tables: all pairs, one in twelve aligned; and those of the exchanges themselves."""
    own, moved = part
    return {"all": [*own, *moved], "own": own}


def card(config: Config, figures: dict[str, Any]) -> str:
    lines = [
        f"| {row['system']} | {row['split']}, {row['pairs']} ({row['figures']['n']:,}) | "
        + " | ".join(cell(row["figures"], name) for name in ("auroc", "f1"))
        + f" | {row['figures']['precision']:.1f} | {row['figures']['recall']:.1f} | "
        + " | ".join(f"{row['figures'][kind]['f1']:.1f}" for kind in ("empathy", "advice"))
        + " |"
        for row in figures["results"]
    ]
    return CARD.format(
        encoder=config.encoder,
        tuning=f"LoRA of rank {config.rank}" if config.rank else "frozen",
        data=config.data,
        pairs=figures["pairs"]["train"],
        aligned=figures["aligned"]["train"],
        step=figures["step"],
        thresholds=", ".join(f"{kind} {bar:.2f}" for kind, bar in figures["thresholds"].items()),
        command=command("alignment", config),
        results="\n".join(lines),
    )


CARD = """# alignment: which of a peer's words meet which of a person's appraisals?

A Siamese encoder, `{encoder}` ({tuning}), mean-pooled, cosine, after ALOE (arXiv 2405.00948). A
linear rule reads the cosines of span and span, span and the other's whole text, and post and reply,
and what the two spans appraise; advice has a rule of its own.

- Data: {data}; {pairs:,} pairs to train on, {aligned:,} of them aligned. The rest are pairs of the
  same exchange that are not, and replies moved to another seeker's post. Split by seeker.
- Kept: the step with the lowest dev loss, {step}. Thresholds on the logit, by the best F1 on dev:
  {thresholds}.
- Command: `{command}`

## Results
In percent, with 95 % intervals of a bootstrap over seekers. "all": with moved replies, so that one
pair in twelve is aligned; "own": the pairs of the exchanges themselves. Spans and their labels are
the annotated ones. Plain similarity is the cosine of the two spans, its thresholds set on dev too.

| system | pairs | AUROC | F1 | precision | recall | F1, empathy | F1, advice |
|---|---|---|---|---|---|---|---|
{results}

## Limits
The bundled corpus is small, invented, and marked once, by its writer: no agreement is known.
Whether a general kind sentence meets this or that part of a post is often a matter of taste. The
encoder sees topic and tone and no negation: blaming the seeker meets "it was my fault" as well as
denying it does, and a copy of the post meets all of it (docs/results/appraisals.md). English only.
"""
