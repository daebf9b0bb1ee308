"""Train an appraiser: how do the sentences of a post or a reply judge the situation?

ALOE's nine labels (arXiv 2405.00948), and none. `--method head` fits a small head on a sentence
encoder, frozen or with LoRA; `--method prompt` asks a language model to fill a gap, with LoRA, or
as it is (`--steps 0`), with examples in the prompt (`--shots`) or without.

    accelerate launch train.py appraisals --output runs/appraisals
    accelerate launch train.py appraisals --method prompt --model flan-t5-small --output runs/prompt
    accelerate launch train.py appraisals --method prompt --steps 0 --shots 1 --output runs/asked
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import finish_trackers, supervised_accelerator
from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared
from recipes.shared.supervised import TEMPERATURES, Supervised, output_field, train_supervised
from rewriting.errors import UserError
from rewriting.runtime.settings import borrowed
from rewriting.words import counted

if TYPE_CHECKING:
    from torch import Tensor

    from rewards.appraisals.units import Unit

logger = logging.getLogger(__name__)
DEFAULT_MODELS = {"head": "minilm-l6", "prompt": "smollm2-135m"}


@dataclass
class Config:
    """Settings of `train.py appraisals`."""

    output: str = output_field("appraisals")
    data: str = borrowed(Supervised, "appraised_data")
    method: str = field(
        default="head",
        metadata={
            "help": "head: a classification head on a sentence encoder; prompt: a language model "
            "that is asked in a prompt."
        },
    )
    model: str = field(
        default="",
        metadata={
            "help": "Model: a short name, a folder or a hub id; '': minilm-l6 for head, "
            "smollm2-135m for prompt."
        },
    )
    rank: int = field(
        default=0,
        metadata={
            "help": "Rank of the LoRA matrices in the model; 0: an encoder stays frozen, a "
            "language model that is trained gets rank 8."
        },
    )
    shots: int = field(
        default=0, metadata={"help": "Number of solved examples of each label in the prompt."}
    )
    dropout: float = field(default=0.5, metadata={"help": "Dropout rate before the head."})
    class_power: float = field(
        default=0.5,
        metadata={
            "help": "Exponent of the class weights: a label weighs frequency^-power; 0: no "
            "weighting."
        },
    )
    steps: int = field(
        default=400,
        metadata={"help": "Optimizer steps; 0: the language model is used without training."},
    )
    batch_size: int = field(
        default=64, metadata={"help": "Sentences per optimizer step, over all processes."}
    )
    micro_batch_size: int = field(
        default=64,
        metadata={"help": "Sentences in memory at once, per process; it changes no result."},
    )
    learning_rate: float = borrowed(Supervised, "learning_rate")
    weight_decay: float = borrowed(Supervised, "weight_decay", 0.3)
    eval_every: int = borrowed(Supervised, "eval_every", 25)
    save_every: int = borrowed(Supervised, "save_every", 100)
    limit: int = field(
        default=0,
        metadata={
            "help": "Maximum number of exchanges used from dev and from test, starting from the "
            "first; 0: all."
        },
    )
    report_to: str = borrowed(Shared, "report_to")
    seed: int = borrowed(Supervised, "seed")


def run(config: Config) -> dict[str, Any]:
    """Train, calibrate, save and measure; the figures."""
    from accelerate.utils import set_seed

    from rewards.appraisals.appraiser import load_appraiser
    from rewards.appraisals.evaluation import of_appraisals
    from rewards.appraisals.units import units_of
    from rewriting.data.appraisals import load_appraisals

    if config.method not in DEFAULT_MODELS:
        raise UserError(f"method is head or prompt, not {config.method!r}.")
    if config.method == "head" and config.steps < 1:
        raise UserError("--steps 0 needs --method prompt: an untrained head knows nothing.")
    if config.shots < 0:
        raise UserError(f"shots is 0 or more, not {config.shots}.")
    config = replace(config, model=config.model or DEFAULT_MODELS[config.method])
    accelerator = supervised_accelerator("appraisals", config)
    logger.info("%s on %s", counted(accelerator.num_processes, "process"), accelerator.device)
    exchanges = list(load_appraisals(config.data))
    parts = {name: [e for e in exchanges if e.split == name] for name in ("train", "dev", "test")}
    parts |= {name: parts[name][: config.limit or None] for name in ("dev", "test")}
    units = {name: units_of(rows) for name, rows in parts.items()}
    if not units["train"] or not units["dev"]:
        raise UserError(f"{config.data}: too few appraised exchanges to learn from.")
    logger.info("%d sentences to train on, %d for dev", len(units["train"]), len(units["dev"]))
    set_seed(config.seed)
    make = with_head if config.method == "head" else with_prompt
    appraiser, step = make(config, units, accelerator)
    if not accelerator.is_main_process:
        return {}
    folder = Path(config.output) / "model"
    appraiser.save(folder)
    loaded = load_appraiser(str(folder))  # what is measured is what is on the disk
    figures = {
        "step": step,
        "units": {name: len(rows) for name, rows in units.items()},
        "results": {
            name: of_appraisals(loaded, parts["train"], parts[name])
            for name in ("dev", "test")
            if parts[name]
        },
    }
    write_card(folder, config, figures, card(config, figures))
    tell_ending("appraisals", config.output)
    return figures


def with_head(config: Config, units: dict[str, list[Unit]], accelerator: Any) -> tuple[Any, int]:
    """The head, trained; of a frozen encoder every sentence is read once."""
    import torch
    from torch import nn

    from rewards.appraisals.appraiser import AppraisalHead, SentenceAppraiser, signs_of
    from rewards.appraisals.sentence_states import SentenceStates

    states = SentenceStates.load(config.model, rank=config.rank).to(accelerator.device)
    head = AppraisalHead(states.width, config.dropout).to(accelerator.device)
    appraiser = SentenceAppraiser(states, head)
    network = nn.ModuleDict({"states": states, "head": head})

    def logits(rows: Sequence[Unit]) -> Tensor:
        texts = [row.text for row in rows]
        vectors = states(texts) if config.rank else states.embed(texts).to(accelerator.device)
        found: Tensor = head(vectors, signs_of(texts, [r.role for r in rows]).to(vectors.device))
        return found

    step = fit(config, network, logits, units, accelerator)
    states.forget()
    network.eval()
    with torch.no_grad():
        dev_NL = torch.cat(
            [logits(units["dev"][k : k + 64]) for k in range(0, len(units["dev"]), 64)]
        )
    head.temperature.fill_(fitted_temperature(dev_NL.cpu(), units["dev"]))
    return appraiser, step


def with_prompt(config: Config, units: dict[str, list[Unit]], accelerator: Any) -> tuple[Any, int]:
    """The language model behind a prompt: trained where there are steps, else calibrated."""
    from rewards.appraisals.prompts import (
        GapFiller,
        PromptAppraiser,
        few_shot,
        prompt_of,
    )

    rank = (config.rank or 8) if config.steps else 0
    filler = GapFiller.load(config.model, rank=rank).to(accelerator.device)
    examples = few_shot(units["train"], config.shots, filler.fillers, config.seed)
    appraiser = PromptAppraiser(filler, examples=examples)
    step = 0
    if config.steps:

        def logits(rows: Sequence[Unit]) -> Tensor:
            found: Tensor = filler([examples + prompt_of(row.text, row.role) for row in rows])
            return found

        step = fit(config, filler, logits, units, accelerator)
    else:
        appraiser.calibrate()
        finish_trackers(accelerator)
    dev = units["dev"]
    found = appraiser.probabilities([u.text for u in dev], [u.role for u in dev])
    appraiser.temperature = fitted_temperature(found.clamp_min(1e-12).log(), dev)
    return appraiser, step


def fit(
    config: Config,
    network: Any,
    logits: Callable[[Sequence[Unit]], Tensor],
    units: dict[str, list[Unit]],
    accelerator: Any,
) -> int:
    """Cross-entropy over the labels, rare ones weighing more; the best step by dev loss."""
    import torch

    from rewards.appraisals.units import LABELS

    counts = Counter(unit.label for unit in units["train"])
    weight_L = torch.tensor([max(1, counts[label]) ** -config.class_power for label in LABELS])

    def loss(rows: Sequence[Unit]) -> tuple[Tensor, float]:
        gold_N = torch.tensor([LABELS.index(row.label) for row in rows])
        weights_N = weight_L[gold_N]
        found_NL = logits(rows)
        losses_N = torch.nn.functional.cross_entropy(
            found_NL, gold_N.to(found_NL.device), reduction="none"
        )
        return (losses_N * weights_N.to(losses_N.device)).sum(), float(weights_N.sum())

    best = train_supervised(
        "appraisals",
        config,
        accelerator,
        network,
        loss,
        units["train"],
        units["dev"],
        size=lambda unit: len(unit.text),
    )
    return best.step


def fitted_temperature(logits_NL: Tensor, units: Sequence[Unit]) -> float:
    """The temperature under which the labels are likeliest (arXiv 1706.04599), from a fine grid."""
    import torch

    from rewards.appraisals.units import LABELS

    gold_N = torch.tensor([LABELS.index(unit.label) for unit in units])

    def loss(temperature: float) -> float:
        return float(torch.nn.functional.cross_entropy(logits_NL / temperature, gold_N))

    return min(TEMPERATURES, key=loss)


def card(config: Config, figures: dict[str, Any]) -> str:
    from recipes.shared.tables import cell

    lines = [
        f"| {system} | {cut}, {split} | {cell(found, 'accuracy')} | {cell(found, 'macro_f1')} |"
        for split, systems in figures["results"].items()
        for system, cuts in systems.items()
        for cut, found in cuts.items()
    ]
    asked = f"LoRA of rank {config.rank}" if config.rank else "frozen"
    if config.method == "prompt":
        asked = "fine-tuned through LoRA" if config.steps else "untrained, calibrated"
        asked += f", {counted(config.shots, 'example')} of each label in the prompt"
    return CARD.format(
        what="a linear head on states of" if config.method == "head" else "a prompt to",
        model=config.model,
        asked=asked,
        data=config.data,
        train=figures["units"]["train"],
        step=figures["step"],
        command=command("appraisals", config),
        results="\n".join(lines),
        labels=of_labels(figures["results"]),
    )


def of_labels(results: dict[str, Any]) -> str:
    """F1 and number of each label on the parts of the test split, or of dev."""
    split = "test" if "test" in results else "dev"
    found = results[split]["model"]["parts"]
    cells = [f"{name} {found['f1'][name]:.0f} (n {found['count'][name]})" for name in found["f1"]]
    return f"{split}: {', '.join(cells)}"


CARD = """# appraisals: how does a sentence judge the situation it speaks of?

ALOE's nine labels (arXiv 2405.00948), and none, sentence by sentence: {what} `{model}`
({asked}). It is told who speaks: the person whose situation it is, or the peer who answers.

- Data: {data}; {train:,} sentences or marked parts of sentences to train on, split by seeker.
- Kept: the step with the lowest dev loss, {step} (0: not trained). Temperature fitted on dev.
- Command: `{command}`

## Results
In percent, with 95 % intervals of a bootstrap over seekers. "parts": sentences, cut where two
appraisals were marked in one; "sentences": whole, as they come at use, by the label of most of it.

| system | data | accuracy | macro-F1 |
|---|---|---|---|
{results}

F1 of each label on the parts of {labels}.

## Limits
The bundled corpus is small, invented, and marked once, by its writer: no agreement is known, and a
model trained on it is sure to overrate itself on others' text. One label a sentence. English only.
For research and feedback; not a diagnosis of anybody, and not validated for clinical use.
"""
