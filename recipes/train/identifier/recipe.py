"""Train the EPITOME identifier: how empathic is a response, and where does it show?

A bi-encoder with seeker-aware attention, a level head and a rationale head per mechanism (arXiv
2009.08441). The best step by dev is kept; then weak against strong is fitted on the rationales of
train and dev, and probabilities, decisions and rationale thresholds on dev.

    accelerate launch train.py identifier --data data/epitome --output runs/identifier
    accelerate launch train.py identifier --data data/epitome --arrangement independent --rank 0
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import supervised_accelerator
from recipes.shared.cards import write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared, columns_field
from recipes.shared.supervised import Supervised, output_field, train_supervised
from recipes.train.identifier.adaptation import adapt
from recipes.train.identifier.card import card, mean_of
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.settings import borrowed
from rewriting.words import counted

if TYPE_CHECKING:
    from rewards.identifiers.epitome.identifier import EpitomeIdentifier
    from rewriting.data import Split

logger = logging.getLogger(__name__)


@dataclass
class Config:
    """Settings of `train.py identifier`."""

    output: str = output_field("identifier")
    data: str = borrowed(Supervised, "labelled_data")
    columns: str = columns_field()
    extra_data: str = field(
        default="",
        metadata={
            "help": "More labelled exchanges, for training only; replies marked as not fitting "
            "their post are left out."
        },
    )
    encoder: str = borrowed(Supervised, "encoder")
    arrangement: str = field(
        default="shared",
        metadata={
            "help": "shared: one encoder for posts, responses and all mechanisms; independent: six "
            "encoders, as in the paper."
        },
    )
    rank: int = field(
        default=32, metadata={"help": "Rank of the LoRA matrices; 0: the whole encoder is trained."}
    )
    dropout: float = field(default=0.3, metadata={"help": "Dropout rate in the heads."})
    hidden_share: float = field(
        default=0.12,
        metadata={"help": "Share of response tokens that are masked at random in training."},
    )
    max_seeker_tokens: int = field(
        default=128, metadata={"help": "Longer posts are cut to this many tokens."}
    )
    max_response_tokens: int = field(
        default=256, metadata={"help": "Longer responses are cut to this many tokens."}
    )
    train_seeker_tokens: int = field(
        default=64,
        metadata={
            "help": "In training, longer posts are cut to this many tokens; fewer is faster."
        },
    )
    train_response_tokens: int = field(
        default=128,
        metadata={
            "help": "In training, longer responses are cut to this many tokens; fewer is faster."
        },
    )
    level_weight: float = field(
        default=1.0, metadata={"help": "Weight of the level loss (λ_EI in the paper)."}
    )
    rationale_weight: float = field(
        default=0.5, metadata={"help": "Weight of the rationale loss (λ_RE in the paper)."}
    )
    class_power: float = field(
        default=0.5,
        metadata={
            "help": "Exponent of the class weights: replies with and without a mechanism weigh "
            "frequency^-power; 0: no weighting."
        },
    )
    epochs: int = field(default=5, metadata={"help": "Passes over the training rows."})
    batch_size: int = borrowed(Supervised, "batch_size")
    micro_batch_size: int = borrowed(Supervised, "micro_batch_size")
    learning_rate: float = field(
        default=5e-4,
        metadata={"help": "Peak learning rate of the encoder, after the linear warm-up."},
    )
    head_factor: float = field(
        default=2.0,
        metadata={"help": "Learning rate of the heads, as a multiple of the encoder's."},
    )
    weight_decay: float = borrowed(Supervised, "weight_decay")
    average: float = field(
        default=0.99,
        metadata={
            "help": "Decay of the moving average of the weights, which is measured and saved; 0: "
            "no average."
        },
    )
    evals_per_epoch: int = field(
        default=2, metadata={"help": "How many times per epoch the dev part is measured."}
    )
    adapt_data: str = field(
        default="",
        metadata={
            "help": "Unlabelled exchanges for masked-language pre-training before the main "
            "training; '': no pre-training."
        },
    )
    adapt_steps: int = field(
        default=300, metadata={"help": "Optimizer steps of the masked-language pre-training."}
    )
    adapt_rate: float = field(
        default=2e-4, metadata={"help": "Peak learning rate of the masked-language pre-training."}
    )
    report_to: str = borrowed(Shared, "report_to")
    seed: int = field(
        default=12, metadata={"help": "The same seed gives the same model. The paper's seed is 12."}
    )


def run(config: Config) -> dict[str, Any]:
    """Train, keep the best, calibrate, save and measure; the figures."""
    from accelerate.utils import set_seed

    from rewards.identifiers.epitome.calibration import calibrate
    from rewards.identifiers.epitome.identifier import Architecture, EpitomeIdentifier
    from rewards.identifiers.epitome.strength import fit_strength
    from rewards.identifiers.evaluation import evaluate

    accelerator = supervised_accelerator("identifier", config)
    logger.info("%s on %s", counted(accelerator.num_processes, "process"), accelerator.device)
    splits = labelled_splits(config)
    set_seed(config.seed)
    architecture = Architecture(
        config.encoder,
        config.arrangement,
        config.rank,
        config.dropout,
        config.max_seeker_tokens,
        config.max_response_tokens,
    )
    networks, tokenizer = architecture.build()
    networks.to(accelerator.device)
    if config.adapt_data:
        adapt(config, networks, tokenizer, accelerator)
    identifier = EpitomeIdentifier(architecture, networks, tokenizer, "identifier")
    step = fit(config, identifier, splits, accelerator)
    if not accelerator.is_main_process:
        return {}
    folder = Path(config.output) / "model"
    extra = extra_exchanges(config.extra_data)
    own = splits["train"][: len(splits["train"]) - len(extra)]
    fit_strength(identifier, [*own, *splits["dev"]], extra)
    calibrate(identifier, splits["dev"]).save(folder)
    loaded = EpitomeIdentifier.load(folder)  # what is measured is what is on the disk
    figures: dict[str, Any] = {"step": step, "rows": {k: len(v) for k, v in splits.items()}}
    figures |= {name: evaluate(loaded, splits[name]) for name in ("dev", "test") if splits[name]}
    write_card(folder, config, figures, card(config, figures))
    tell_ending("identifier", config.output)
    return figures


def labelled_splits(config: Config) -> dict[Split, list[Exchange]]:
    """Exchanges with all three levels, by split; the extra ones are for training alone."""
    from recipes.shared.sources import load_splits

    splits = {
        name: [exchange for exchange in rows if exchange.empathy is not None]
        for name, rows in load_splits(config.data, columns=config.columns).items()
    }
    splits["train"] += extra_exchanges(config.extra_data)
    if not splits["train"] or not splits["dev"]:
        raise UserError(f"{config.data}: too few exchanges with levels of all three mechanisms.")
    return splits


def fit(
    config: Config,
    identifier: EpitomeIdentifier,
    splits: dict[Split, list[Exchange]],
    accelerator: Any,
) -> int:
    """Train the networks, and leave them as they were at the best step; its number."""
    from rewards.identifiers.epitome.training import IdentifierLoss, gate_weights, make_examples

    lengths = (config.train_seeker_tokens, config.train_response_tokens)
    examples = make_examples(splits["train"], identifier.tokenizer, *lengths)
    loss = IdentifierLoss(
        identifier,
        gate_weights(examples, config.class_power),
        level_weight=config.level_weight,
        rationale_weight=config.rationale_weight,
        hidden_share=config.hidden_share,
    )
    per_epoch = max(1, len(examples) // config.batch_size)
    best = train_supervised(
        "identifier",
        config,
        accelerator,
        identifier.networks,
        loss,
        examples,
        make_examples(splits["dev"], identifier.tokenizer, *lengths),
        steps=config.epochs * per_epoch,
        eval_every=max(1, per_epoch // config.evals_per_epoch),
        save_every=max(1, per_epoch // config.evals_per_epoch),
        size=lambda example: len(example.response_ids),
        rate_factors={"heads.": config.head_factor},
        average=config.average,
        dev_score=lambda: dev_score(identifier, splits["dev"]),
    )
    return best.step


def dev_score(identifier: EpitomeIdentifier, exchanges: list[Exchange]) -> float:
    """What the best step is chosen by, lower is better: minus the F1 of some against none and of
    the rationales. Weak or strong is not known yet; it is fitted when the networks are."""
    from rewards.identifiers.evaluation import evaluate

    figures = evaluate(identifier, [at_least_weak(exchange) for exchange in exchanges])
    return -(mean_of(figures, "macro_f1") + mean_of(figures, "token_f1")) / 2


def at_least_weak(exchange: Exchange) -> Exchange:
    """The exchange with every level above none called weak."""
    labels = {m: replace(v, level=min(v.level, 1)) for m, v in exchange.labels.items()}
    return replace(exchange, labels=labels)


def extra_exchanges(data: str) -> list[Exchange]:
    """Labelled exchanges of further sources, without replies that are known not to fit their post.

    Annotators of EPITOME judged the form; in our sample, kind words that miss the post count 0.
    """
    from recipes.shared.sources import known_levels, sources_of
    from rewriting.data import load_exchanges

    return known_levels(row for source in sources_of(data) for row in load_exchanges(source))
