"""Train the sense model: is this sentence right for this post, or only about it?

An encoder reads post and sentence together and says whether the sentence makes sense there, is true
to the post, and would hurt; beside that, what empathy it earns. The reward `sense`, the identifier
`joint` and the output gate of `rewriting rewrite` use it.

    python train.py sense --output runs/sense
    python train.py sense --data sample,data/epitome --epochs 2
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
from recipes.shared.supervised import TUNED, Supervised, train_supervised
from recipes.train.sense.figures import card, fitted_bars, gate_bar, measure
from recipes.train.sense.pages import labelled_exchanges, pages_of
from rewriting.runtime.settings import borrowed
from rewriting.words import counted

if TYPE_CHECKING:
    from rewards.reading.sense_model import SenseModel

logger = logging.getLogger(__name__)
READ_AT_ONCE = 16  # sentences, when the trained model is measured


@dataclass
class Config:
    """Settings of `train.py sense`."""

    output: str = field(
        default="runs/sense",
        metadata={
            "help": "Folder for the model, checkpoints and log. Give the same folder again to "
            "resume a run."
        },
    )
    data: str = field(
        default="sample",
        metadata={
            "help": "Labelled exchanges that teach the levels of empathy: files, folders, hub ids "
            "or sample, separated by commas."
        },
    )
    max_labelled: int = field(
        default=1500,
        metadata={"help": "Maximum number of labelled exchanges to train on; 0: all."},
    )
    corpora: str = field(
        default="machine,fits,lent,rewrites,bank,counterfactuals,sense,calm,kindness",
        metadata={
            "help": "Bundled corpora of labelled sentences to train on, separated by commas."
        },
    )
    encoder: str = borrowed(Supervised, "encoder", "mpnet-base")
    layers: int = field(
        default=9,
        metadata={"help": "Number of encoder layers that are used, from the first; 0: all."},
    )
    frozen_layers: int = field(
        default=0,
        metadata={"help": "Number of the lowest layers that are not trained; 0: all are trained."},
    )
    rank: int = borrowed(Supervised, "rank")
    max_tokens: int = field(
        default=160, metadata={"help": "Longer posts are cut to this many tokens."}
    )
    epochs: float = field(default=2.0, metadata={"help": "Passes over the training posts."})
    batch_size: int = field(
        default=16,
        metadata={
            "help": "Pages per optimizer step, over all processes; a page is a post with its "
            "labelled sentences."
        },
    )
    micro_batch_size: int = field(
        default=8,
        metadata={"help": "Pages in memory at once, per process; it changes no result."},
    )
    learning_rate: float = borrowed(Supervised, "learning_rate", 5e-4)
    moved: int = field(
        default=1,
        metadata={
            "help": "Number of sentences that are moved to each page from other posts, as wrong "
            "ones."
        },
    )
    garbled: bool = field(
        default=True,
        metadata={
            "help": "Add a garbled copy of a right sentence to each page, as an example of "
            "nonsense."
        },
    )
    machine_repeats: int = field(
        default=2,
        metadata={"help": "How many times a pass reads each page of machine sentences."},
    )
    fit_repeats: int = field(
        default=2,
        metadata={"help": "How many times a pass reads each page of the fits."},
    )
    lent_repeats: int = field(
        default=2,
        metadata={"help": "How many times a pass reads each page of lent sentences."},
    )
    start: str = field(
        default="",
        metadata={
            "help": "Folder of a sense model to train further, of the same rank or a smaller one; "
            "'': start from the pretrained encoder."
        },
    )
    false_alarms: float = field(
        default=0.05,
        metadata={"help": "Largest share of right dev sentences that the gate may stop."},
    )
    evaluations: int = field(
        default=6, metadata={"help": "How often the dev loss is measured during training."}
    )
    test: bool = field(
        default=False,
        metadata={"help": "Also measure the test parts; keep a list of every time you do."},
    )
    report_to: str = borrowed(Shared, "report_to")
    seed: int = borrowed(Supervised, "seed")


def run(config: Config) -> dict[str, Any]:
    """Train the model, save it, measure it; the figures."""
    from accelerate.utils import set_seed

    from rewards.reading.sense_model import SenseModel

    accelerator = supervised_accelerator("sense", config)
    logger.info("%s on %s", counted(accelerator.num_processes, "process"), accelerator.device)
    pages, dev = pages_of(config, "train"), pages_of(config, "dev")
    counts = [sum(len(page.sentences) for page in rows) for rows in (pages, dev)]
    logger.info(
        "%d posts with %d sentences to train on; %d posts with %d sentences for dev",
        len(pages),
        counts[0],
        len(dev),
        counts[1],
    )
    set_seed(config.seed)
    model = SenseModel(
        config.encoder,
        config.rank,
        config.max_tokens,
        config.layers,
        frozen_layers=config.frozen_layers,
    )
    if config.start:
        model.fill(Path(config.start), widen=True)
    model.to(accelerator.device)
    steps = max(1, round(config.epochs * len(pages) / config.batch_size))
    every = max(1, steps // max(1, config.evaluations))
    best = train_supervised(
        "sense",
        config,
        accelerator,
        model,
        model.loss,
        pages,
        dev,
        steps=steps,
        eval_every=every,
        save_every=every,
        chosen_afterwards=("test",),
        size=lambda page: page.size,
        **TUNED,
    )
    if not accelerator.is_main_process:
        return {}
    folder = Path(config.output) / "model"
    model.save(folder)
    figures: dict[str, Any] = {"step": best.step, "pages": len(pages), "sentences": counts[0]}
    with accelerator.autocast():
        figures |= set_bars_and_measure(config, model, folder)
    write_card(folder, config, figures, card(config, figures))
    tell_ending("sense", config.output)
    return figures


def set_bars_and_measure(config: Config, model: SenseModel, folder: Path) -> dict[str, Any]:
    """Save the model with its bars, and what it does on dev, and on test where that is asked for.

    Bars and figures belong to the weights on the disk, which are rounded to half precision.
    """
    from rewards.identifiers.evaluation import evaluate
    from rewards.identifiers.joint import JointIdentifier
    from rewards.reading.sense_model import BARS, SenseModel

    exchanges = labelled_exchanges(config, "dev")
    rounded = SenseModel.load(folder, batch_size=READ_AT_ONCE)
    model.bar = gate_bar(rounded, config.false_alarms)
    model.save(folder, **{BARS: fitted_bars(rounded, exchanges)})
    identifier = JointIdentifier.load(folder, batch_size=READ_AT_ONCE)
    figures = {"levels": evaluate(identifier, exchanges), "dev": measure(identifier.model, "dev")}
    if config.test:
        figures["test"] = measure(identifier.model, "test")
    return figures
