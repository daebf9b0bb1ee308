"""Train the backward language model of mutual information: response → seeker post.

A LoRA adapter on the frozen backbone learns to say the seeker post that a response answers
(arXiv 1510.03055). `rewards/terms/mutual_information.py` attaches it as the role `reverse_lm`.

    accelerate launch train.py reverse_lm --data data/epitome --output runs/reverse_lm
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import share_of, supervised_accelerator
from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared, model_options
from recipes.shared.supervised import Supervised, output_field, train_supervised
from rewriting.exchange import Exchange
from rewriting.runtime.models.options import ModelOptions
from rewriting.runtime.settings import borrowed
from rewriting.words import counted

if TYPE_CHECKING:
    from torch import Tensor

    from rewriting.runtime.language_models.backbone import Backbone

logger = logging.getLogger(__name__)
Pair = tuple[list[int], list[int]]  # prefix and continuation, as tokens


@dataclass
class Config:
    """Settings of `train.py reverse_lm`."""

    output: str = output_field("reverse_lm", "adapter")
    data: str = borrowed(Supervised, "data")
    max_rows: int = borrowed(Supervised, "max_rows")
    first_turns: bool = field(
        default=False, metadata={"help": "Leave out exchanges that have earlier turns."}
    )
    model: str = field(
        default="smollm2-135m",
        metadata={"help": "Causal language model: a short name, a folder or a hub id."},
    )
    attention: str = borrowed(ModelOptions, "attention")
    load_in_4bit: bool = borrowed(ModelOptions, "load_in_4bit")
    compile: bool = borrowed(ModelOptions, "compile")
    rank: int = borrowed(Supervised, "rank", 8)
    alpha: int = field(
        default=16, metadata={"help": "LoRA alpha: the update is scaled by alpha / rank."}
    )
    dropout: float = field(default=0.0, metadata={"help": "Dropout rate before the LoRA matrices."})
    lora_layers: str = field(
        default="q_proj,k_proj,v_proj,o_proj",
        metadata={"help": "Layers that get LoRA matrices, separated by commas."},
    )
    max_response_tokens: int = field(
        default=96, metadata={"help": "In training, longer responses are cut to this many tokens."}
    )
    max_seeker_tokens: int = field(
        default=96, metadata={"help": "In training, longer posts are cut to this many tokens."}
    )
    steps: int = borrowed(Supervised, "steps")
    batch_size: int = borrowed(Supervised, "batch_size")
    micro_batch_size: int = borrowed(Supervised, "micro_batch_size")
    learning_rate: float = borrowed(Supervised, "learning_rate", 5e-4)
    warmup: float = borrowed(Supervised, "warmup")
    max_grad_norm: float = borrowed(Supervised, "max_grad_norm")
    eval_every: int = borrowed(Supervised, "eval_every")
    save_every: int = borrowed(Supervised, "save_every")
    max_dev_rows: int = field(
        default=200,
        metadata={
            "help": "Maximum number of exchanges that the dev loss and the final figures are "
            "computed on; 0: all."
        },
    )
    half: bool = field(
        default=True, metadata={"help": "Store the adapter in float16, half the size of float32."}
    )
    report_to: str = borrowed(Shared, "report_to")
    seed: int = field(default=0, metadata={"help": "The same seed gives the same adapter."})


def run(config: Config) -> dict[str, Any]:
    """Train, save the best adapter, measure it; the figures."""
    import torch
    from accelerate.utils import set_seed

    from recipes.shared.sources import drawn, load_splits
    from rewards.terms.mutual_information import REVERSE_ROLE
    from rewriting.runtime.language_models.backbone import Backbone

    options = model_options(config)
    accelerator = supervised_accelerator("reverse_lm", config)
    count = accelerator.num_processes
    share = share_of("batch_size", config.batch_size, count)
    logger.info(
        "%s on %s: each gets %s a step",
        counted(count, "process"),
        accelerator.device,
        counted(share, "pair"),
    )
    splits = load_splits(
        config.data, max_rows=config.max_rows, first_turns=config.first_turns, seed=config.seed
    )
    backbone = Backbone.load(config.model, options=options)
    set_seed(config.seed)
    backbone.add(
        REVERSE_ROLE,
        rank=config.rank,
        alpha=config.alpha,
        dropout=config.dropout,
        targets=config.lora_layers.split(","),
    )
    rows = {name: pairs_of(part, backbone, config) for name, part in splits.items()}
    logger.info("%d pairs to train on, %d for dev", len(rows["train"]), len(rows["dev"]))
    with backbone.role(REVERSE_ROLE):
        best = train_supervised(
            "reverse_lm",
            config,
            accelerator,
            backbone.model,
            lambda pairs: seeker_loss(backbone, pairs),
            rows["train"],
            drawn(rows["dev"], config.max_dev_rows, config.seed),
            size=lambda pair: len(pair[0]) + len(pair[1]),
        )
    if not accelerator.is_main_process:
        return {}
    folder = Path(config.output) / "adapter"
    backbone.save(REVERSE_ROLE, folder, dtype=torch.float16 if config.half else None)
    figures: dict[str, Any] = {"step": best.step, "train_pairs": len(rows["train"])}
    figures["results"] = measure(config, folder)
    write_card(folder, config, figures, card(config, figures))
    tell_ending("reverse_lm", config.output)
    return figures


def pairs_of(exchanges: Sequence[Exchange], backbone: Backbone, config: Config) -> list[Pair]:
    """Exchanges as tokens: the response in its frame, then the seeker post to be said."""
    from rewards.terms.mutual_information import backward_prefixes

    pairs = []
    for exchange in exchanges:
        response = backbone.tokens(exchange.response_post.strip())
        if len(response) > config.max_response_tokens:
            text = backbone.tokenizer.decode(response[: config.max_response_tokens])
        else:
            text = exchange.response_post
        (prefix,) = backward_prefixes([text])
        seeker = backbone.tokens(exchange.seeker_post.strip())[: config.max_seeker_tokens]
        if seeker:
            pairs.append((backbone.tokens(prefix), seeker))
    return pairs


def seeker_loss(backbone: Backbone, pairs: Sequence[Pair]) -> tuple[Tensor, float]:
    """Minus log p of the seeker's tokens, and their number: the response is only read."""
    import torch

    from rewriting.runtime.language_models.log_probs import continuation_log_probs

    fitted = [backbone.fitted(*pair) for pair in pairs]
    rows = continuation_log_probs(backbone.model, fitted, plain_head=backbone.plain_head)
    return -torch.cat(rows).sum(), float(sum(len(row) for row in rows))


def measure(config: Config, folder: Path) -> list[dict[str, Any]]:
    """Perplexity per token of dev and test seeker posts, with the adapter as it was saved.

    Beside it stand the bare model, and the adapter with responses to other seekers: what an
    adapter gains over the second is knowledge of the response, the rest is the manner of posts.
    """
    from recipes.shared.sources import drawn, load_splits, other_responses, sources_of
    from rewards.terms.mutual_information import REVERSE_ROLE
    from rewriting.runtime.language_models.backbone import Backbone

    backbone = Backbone.load(config.model, options=model_options(config))
    backbone.attach(REVERSE_ROLE, folder)
    results = []
    for source in sources_of(config.data):
        splits = load_splits(source, first_turns=config.first_turns, seed=config.seed)
        for split in ("dev", "test"):
            exchanges = drawn(splits[split], config.max_dev_rows, config.seed)
            posts = [exchange.seeker_post.strip() for exchange in exchanges]
            if len(set(posts)) < 2:
                continue
            own = [exchange.response_post for exchange in exchanges]
            others = other_responses(exchanges)
            results.append(
                {
                    "source": source,
                    "split": split,
                    "pairs": len(posts),
                    "perplexity": perplexity(backbone, own, posts, REVERSE_ROLE),
                    "bare_model": perplexity(backbone, own, posts, None),
                    "shuffled_responses": perplexity(backbone, others, posts, REVERSE_ROLE),
                    "prefers_own": preference(backbone, own, others, posts),
                }
            )
    return results


def perplexity(
    backbone: Backbone, responses: Sequence[str], posts: Sequence[str], role: str | None
) -> float:
    from rewards.terms.mutual_information import backward_prefixes

    scores = backbone.scores(backward_prefixes(responses), posts, role)
    tokens = sum(score.num_tokens for score in scores)
    return math.exp(-sum(score.total for score in scores) / tokens)


def preference(
    backbone: Backbone,
    responses: Sequence[str],
    others: Sequence[str],
    posts: Sequence[str],
) -> float:
    """Percentage of posts that are likelier after their own response than after another's."""
    from rewards.terms.mutual_information import REVERSE_ROLE, backward_prefixes

    own = backbone.scores(backward_prefixes(responses), posts, REVERSE_ROLE)
    other = backbone.scores(backward_prefixes(others), posts, REVERSE_ROLE)
    wins = sum(a.total > b.total for a, b in zip(own, other, strict=True))
    return 100 * wins / len(posts)


def card(config: Config, figures: dict[str, Any]) -> str:
    lines = [
        f"| {row['source']}, {row['split']} ({row['pairs']} pairs) | {row['perplexity']:.2f} | "
        f"{row['bare_model']:.2f} | {row['shuffled_responses']:.2f} | {row['prefers_own']:.1f} % |"
        for row in figures["results"]
    ]
    return CARD.format(
        model=config.model,
        rank=config.rank,
        targets=config.lora_layers.replace(",", ", "),
        data=config.data.replace(",", ", "),
        command=command("reverse_lm", config),
        pairs=figures["train_pairs"],
        step=figures["step"],
        results="\n".join(lines),
    )


CARD = """# reverse_lm: response → seeker post

A LoRA adapter (rank {rank} on {targets}) on `{model}`. Given a response, it gives the probability
of the seeker post that it answers: the backward half of the reward `mutual_information`.

- Data: {data};
  {pairs:,} pairs of the train part (split by seeker, `rewriting.data.split_of`).
- Loss: on the tokens of the seeker post alone. Kept: the step with the lowest dev loss, {step}.
- Command: `{command}`

## Results
Perplexity of a token of the seeker post; lower is better. The last column: how many seeker posts
are likelier after their own response than after somebody else's (chance: 50 %).

| data | with adapter | bare model | with adapter, responses shuffled | prefers own |
|---|---|---|---|---|
{results}

## Limits
Most of the gain over the bare model is the manner of such posts; what the response itself tells is
the difference to the shuffled column. English posts about everyday and mental distress only. It
compares responses to one post with each other and is no measure of their quality. The weights hold
no text, yet a language model can repeat phrases of what it was trained on.
"""
