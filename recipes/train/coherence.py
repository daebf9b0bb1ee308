"""Train the coherence model: do two sentences belong to the same response?

A small head on frozen sentence embeddings learns to tell pairs of sentences of one response from
pairs of two (rewards/reading/sentence_pairs.py), and is calibrated on the dev part. The reward
`coherence` uses it.

    accelerate launch train.py coherence --data data/epitome --output runs/coherence
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import supervised_accelerator
from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared
from recipes.shared.supervised import TEMPERATURES, Supervised, output_field, train_supervised
from rewriting.runtime.settings import borrowed
from rewriting.statistics.classification import auroc
from rewriting.words import counted

if TYPE_CHECKING:
    from torch import Tensor

    from rewards.reading.sentence_pairs import SentencePair
    from rewards.terms.coherence import CoherenceModel
    from rewriting.data import Split

logger = logging.getLogger(__name__)
TRAINING_CACHE = 1_000_000  # sentences: every one of the data is encoded once


@dataclass
class Config:
    """Settings of `train.py coherence`."""

    output: str = output_field("coherence")
    data: str = borrowed(Supervised, "data")
    max_rows: int = borrowed(Supervised, "max_rows")
    encoder: str = borrowed(Supervised, "sentence_encoder")
    hidden: int = field(default=64, metadata={"help": "Width of the head's two hidden layers."})
    dropout: float = field(default=0.3, metadata={"help": "Dropout rate in the head."})
    pairs_per_response: int = field(
        default=4, metadata={"help": "Maximum number of sentence pairs taken from one response."}
    )
    steps: int = borrowed(Supervised, "steps", 3000)
    batch_size: int = field(
        default=256, metadata={"help": "Sentence pairs per optimizer step, over all processes."}
    )
    learning_rate: float = borrowed(Supervised, "learning_rate")
    weight_decay: float = borrowed(Supervised, "weight_decay", 0.05)
    warmup: float = borrowed(Supervised, "warmup")
    max_grad_norm: float = borrowed(Supervised, "max_grad_norm")
    eval_every: int = borrowed(Supervised, "eval_every", 250)
    save_every: int = borrowed(Supervised, "save_every", 500)
    report_to: str = borrowed(Shared, "report_to")
    seed: int = borrowed(Supervised, "seed")


def run(config: Config) -> dict[str, Any]:
    """Train, calibrate, save and measure the model; the figures."""
    from accelerate.utils import set_seed

    from rewards.terms.coherence import CoherenceHead, CoherenceModel
    from rewriting.runtime.models.named import load_sentence_encoder

    accelerator = supervised_accelerator("coherence", config)
    logger.info("%s on %s", counted(accelerator.num_processes, "process"), accelerator.device)
    encoder = load_sentence_encoder(config.encoder)
    set_seed(config.seed)
    width = encoder.encode(["width"]).shape[1]
    head = CoherenceHead(width, config.hidden, config.dropout).to(accelerator.device)
    model = CoherenceModel(
        encoder,
        head,
        encoder_name=config.encoder,
        batch_size=64,
        remember_all=True,
        cache_size=TRAINING_CACHE,
    )
    pairs = {name: pairs_of(config, model, name) for name in ("train", "dev")}
    logger.info("%d pairs to train on, %d for dev", len(pairs["train"]), len(pairs["dev"]))
    best = train_supervised(
        "coherence",
        config,
        accelerator,
        head,
        lambda rows: pair_loss(model, rows),
        pairs["train"],
        pairs["dev"],
        micro_batch_size=config.batch_size,
    )
    if not accelerator.is_main_process:
        return {}
    model.temperature = fitted_temperature(model, pairs["dev"])
    folder = Path(config.output) / "model"
    model.save(folder)
    figures: dict[str, Any] = {"step": best.step, "train_pairs": len(pairs["train"])}
    figures |= {"temperature": model.temperature, "results": measure(config, model)}
    write_card(folder, config, figures, card(config, figures))
    tell_ending("coherence", config.output)
    return figures


def pairs_of(
    config: Config, model: CoherenceModel, split: Split, data: str = ""
) -> list[SentencePair]:
    """The pairs of one part of the data, made source by source.

    A negative with a sentence of another source would teach the manners of sources: who writes on
    Reddit and who for a crowd-worker's wage.
    """
    from recipes.shared.sources import load_splits, sources_of
    from rewards.reading.sentence_pairs import make_pairs

    pairs: list[SentencePair] = []
    for source in sources_of(data or config.data):
        splits = load_splits(source, max_rows=config.max_rows, seed=config.seed)
        pairs += make_pairs(
            splits[split],
            model.embed,
            pairs_per_response=config.pairs_per_response,
            seed=config.seed,
        )
    return pairs


def pair_loss(model: CoherenceModel, pairs: Sequence[SentencePair]) -> tuple[Tensor, float]:
    """Weighted cross-entropy of same or not, and the weight."""
    import torch

    parameter = next(model.head.parameters())
    u_BD = model.embed([pair.first for pair in pairs]).to(parameter.device)
    v_BD = model.embed([pair.second for pair in pairs]).to(parameter.device)
    same_B, weight_B = labels(pairs, parameter.device)
    losses_B = torch.nn.functional.binary_cross_entropy_with_logits(
        model.head(u_BD, v_BD), same_B, weight=weight_B, reduction="sum"
    )
    return losses_B, float(weight_B.sum())


def labels(pairs: Sequence[SentencePair], device: Any = "cpu") -> tuple[Tensor, Tensor]:
    """Same or not, as 1 and 0, and the weights, [B] each."""
    import torch

    same_B = torch.tensor([float(pair.same) for pair in pairs], device=device)
    return same_B, torch.tensor([pair.weight for pair in pairs], device=device)


def fitted_temperature(model: CoherenceModel, pairs: Sequence[SentencePair]) -> float:
    """The temperature under which the pairs are likeliest (arXiv 1706.04599), from a fine grid."""
    from torch.nn.functional import binary_cross_entropy_with_logits

    logits_B = model.logits([(pair.first, pair.second) for pair in pairs]) * model.temperature
    same_B, weight_B = labels(pairs)

    def loss(temperature: float) -> float:
        return float(binary_cross_entropy_with_logits(logits_B / temperature, same_B, weight_B))

    return min(TEMPERATURES, key=loss)


def measure(config: Config, model: CoherenceModel) -> list[dict[str, Any]]:
    """Accuracy, AUROC and calibration on the dev and the test part of every source."""
    from recipes.shared.sources import sources_of

    results: list[dict[str, Any]] = []
    parts: tuple[Split, ...] = ("dev", "test")
    for source, split in product(sources_of(config.data), parts):
        pairs = pairs_of(config, model, split, source)
        if pairs:
            figures = scores_of(model, pairs)
            results.append({"source": source, "split": split, "pairs": len(pairs), **figures})
    return results


def scores_of(model: CoherenceModel, pairs: Sequence[SentencePair]) -> dict[str, float]:
    """Percentages, weighted so that same and not same count alike; AUROC also by kind."""
    from rewards.reading.sentence_pairs import KINDS

    probabilities = model.probabilities([(pair.first, pair.second) for pair in pairs])
    rows = list(zip(pairs, probabilities, strict=True))
    u_BD = model.embed([pair.first for pair in pairs])
    v_BD = model.embed([pair.second for pair in pairs])
    cosines = list(zip(pairs, (u_BD * v_BD).sum(dim=-1).tolist(), strict=True))
    total = sum(pair.weight for pair in pairs)
    right = sum(pair.weight for pair, p in rows if (p > 0.5) == pair.same)
    # Weighted mean over ten bins of |share of same − mean probability|.
    gaps = [0.0] * 10
    for pair, p in rows:
        gaps[min(int(p * 10), 9)] += pair.weight * (pair.same - p)

    def ranked(kinds: Sequence[str], rows: Sequence[tuple[SentencePair, float]] = rows) -> float:
        chosen = [(pair, p) for pair, p in rows if pair.same or pair.kind in kinds]
        same, weights = [pair.same for pair, _ in chosen], [pair.weight for pair, _ in chosen]
        return 100 * auroc(same, [p for _, p in chosen], weights)

    return {
        "accuracy": 100 * right / total,
        "auroc": ranked(list(KINDS)),
        "calibration_error": 100 * sum(map(abs, gaps)) / total,
        **{f"auroc_{kind}": ranked([kind]) for kind in KINDS},
        "auroc_of_cosine": ranked(list(KINDS), cosines),
    }


def card(config: Config, figures: dict[str, Any]) -> str:
    names = [
        "accuracy",
        "auroc",
        *(f"auroc_{kind}" for kind in ("random", "same_topic", "nearest")),
    ]
    names += ["auroc_of_cosine", "calibration_error"]
    lines = [
        f"| {row['source']}, {row['split']} ({row['pairs']:,} pairs) | "
        + " | ".join(f"{row[name]:.1f}" for name in names)
        + " |"
        for row in figures["results"]
    ]
    return CARD.format(
        encoder=config.encoder,
        hidden=config.hidden,
        data=config.data.replace(",", ", "),
        pairs=figures["train_pairs"],
        step=figures["step"],
        temperature=figures["temperature"],
        command=command("coherence", config),
        results="\n".join(lines),
    )


CARD = """# coherence: are two sentences of one response?

A head on the frozen sentence encoder `{encoder}`, the model behind the reward `coherence`: both
embeddings projected to {hidden} numbers, then [u, v, |u − v|, u∘v] and the cosine → {hidden} → 1.
Half of its training pairs are of one response, half of two of one source: random, of the same
topic, or nearest neighbours. So 0.5 means "cannot tell".

- Data: {data};
  {pairs:,} pairs from the train part (split by seeker, `rewriting.data.split_of`).
- Kept: the step with the lowest dev loss, {step}. Temperature, fitted on dev: {temperature:.2f}.
- Command: `{command}`

## Results
In percent; pairs of one response and of two weigh alike, so chance is 50 everywhere. AUROC also
against each kind of negative, and of the plain cosine of the embeddings as a baseline. The last
column: the mean gap between probability and share.

| data | accuracy | AUROC | random | same topic | nearest | cosine | calibration error |
|---|---|---|---|---|---|---|---|
{results}

## Limits
It knows that sentences go together, not that what they say is true or kind. Many sentences of
support fit many responses, so probabilities near 0.5 are common and right. Frozen embeddings see
topic and tone; contradiction and the order of sentences they hardly see. English only.
"""
