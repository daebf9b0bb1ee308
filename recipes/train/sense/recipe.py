"""Train the sense model: is this sentence right for this post, or only about it?

An encoder reads post and sentence together and says whether the sentence makes sense there, is true
to the post, and would hurt; beside that, what empathy it earns. The reward `sense`, the identifier
`joint` and the output gate of `rewriting rewrite` use it.

    python train.py sense --output runs/sense
    python train.py sense --data sample,data/epitome --epochs 2
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from recipes.shared.accelerator import supervised_accelerator
from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared
from recipes.shared.supervised import Supervised, train_supervised
from rewriting.data.load import SAMPLE
from rewriting.errors import UserError
from rewriting.runtime.seeds import derive_seed
from rewriting.runtime.settings import borrowed
from rewriting.statistics.classification import auroc

if TYPE_CHECKING:
    from rewards.identifiers.by_sentence import Bars
    from rewards.reading.labelled import Page
    from rewards.reading.sense_model import SenseModel
    from rewriting.exchange import Exchange

logger = logging.getLogger(__name__)
PARTS = ("counterfactuals", "sense")
SENTENCES_OF_PAGE = 12
READ_AT_ONCE = 16  # sentences, when the trained model is measured
NO_BARS = ((0.5,) * 3, (0.5,) * 3)  # until they are fitted


@dataclass
class Config:
    """Settings of `train.py sense`."""

    output: str = field(
        default="runs/sense",
        metadata={"help": "Folder for the model, checkpoints and log; the same one goes on."},
    )
    data: str = field(
        default="sample",
        metadata={
            "help": "Labelled exchanges for the levels of empathy, by commas: sample, a folder."
        },
    )
    max_labelled: int = field(
        default=1500, metadata={"help": "Labelled exchanges of train at the most; 0: all."}
    )
    corpora: str = field(
        default="machine,fits,lent,rewrites,bank,counterfactuals,sense,calm,kindness",
        metadata={"help": "Bundled corpora of labelled sentences to learn from, by commas."},
    )
    encoder: str = borrowed(Supervised, "encoder", "mpnet-base")
    layers: int = field(
        default=9, metadata={"help": "Layers of the encoder that are used; 0: all of them."}
    )
    frozen_layers: int = field(
        default=0,
        metadata={"help": "So many of the lowest layers are left as they are; 0: none."},
    )
    rank: int = borrowed(Supervised, "rank")
    max_tokens: int = field(default=160, metadata={"help": "Longer posts are cut to this."})
    epochs: float = field(default=2.0, metadata={"help": "Passes over the training pages."})
    batch_size: int = field(
        default=16,
        metadata={"help": "Pages per optimizer step, over all processes; a page is a post."},
    )
    micro_batch_size: int = field(
        default=8, metadata={"help": "Pages that are in memory at once, per process."}
    )
    learning_rate: float = borrowed(Supervised, "learning_rate", 5e-4)
    moved: int = field(
        default=1, metadata={"help": "Sentences of other posts that are added to each page."}
    )
    garbled: bool = field(
        default=True,
        metadata={"help": "Add a garbled copy of a right sentence to each page, as senseless."},
    )
    machine_repeats: int = field(
        default=2,
        metadata={"help": "How often a page of machine sentences comes in a pass, at least 1."},
    )
    fit_repeats: int = field(
        default=2,
        metadata={"help": "How often a page of the fits comes in a pass, at least 1."},
    )
    lent_repeats: int = field(
        default=2,
        metadata={"help": "How often a page of the lent sentences comes in a pass, at least 1."},
    )
    start: str = field(
        default="",
        metadata={"help": "Folder of a sense model to go on from; '': the pretrained encoder."},
    )
    false_alarms: float = field(
        default=0.05, metadata={"help": "Share of right dev sentences that the gate may stop."}
    )
    evaluations: int = field(
        default=6, metadata={"help": "How often the dev loss is measured during training."}
    )
    test: bool = field(
        default=False, metadata={"help": "Measure the test parts too; list every look at them."}
    )
    report_to: str = borrowed(Shared, "report_to")
    seed: int = borrowed(Supervised, "seed")


def run(config: Config) -> dict[str, Any]:
    """Train the model, save it, measure it; the figures."""
    from accelerate.utils import set_seed

    from rewards.reading.sense_model import SenseModel

    accelerator = supervised_accelerator("sense", config)
    logger.info("%d process(es) on %s", accelerator.num_processes, accelerator.device)
    pages, dev = pages_of(config, "train"), pages_of(config, "dev")
    counts = [sum(len(page.sentences) for page in rows) for rows in (pages, dev)]
    logger.info(
        "%d pages with %d sentences; dev: %d, %d", len(pages), counts[0], len(dev), counts[1]
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
        model.fill(Path(config.start))
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
        weight_decay=0.01,
        eval_every=every,
        save_every=every,
        chosen_afterwards=("test",),
        size=lambda page: page.size,
        rate_factors={"head": 2.0},
        average=0.98,
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


def pages_of(config: Config, split: str) -> list[Page]:
    """The pages of one part, in an order that follows from the seed.

    Kindness sentences come many to a page, without a post: they teach what hurts by itself.
    """
    from recipes.shared.kindness_sentences import sentences
    from recipes.shared.sources import drawn
    from rewards.audit.stock import STOCK, read_sentences
    from rewards.reading import labelled
    from rewriting.data import load_exchanges

    train = split == "train"
    chosen = chosen_corpora(config.corpora)
    corpora = {name: CORPORA[name](split) for name in CORPORA if name in chosen}
    posts = [page for pages in corpora.values() for page in pages]
    rows = drawn(labelled_exchanges(config, split), config.max_labelled, config.seed)
    posts += labelled.labelled_pages(rows if train else rows[:100])
    seed = derive_seed(config.seed, "sense", split)
    added = config.moved + config.garbled
    posts = labelled.merged(posts, SENTENCES_OF_PAGE - added)
    posts = labelled.with_moved(posts, config.moved, seed)
    if config.garbled:
        posts = labelled.with_garbled(posts, seed)
    if train:
        repeats = {
            "machine": config.machine_repeats,
            "fits": config.fit_repeats,
            "lent": config.lent_repeats,
        }
        for name, times in repeats.items():
            again = labelled.merged(corpora.get(name, []), SENTENCES_OF_PAGE)
            posts += again * (times - 1)
        if "calm" in chosen:
            stock = read_sentences(STOCK) + weak_sentences(f"sample:counterfactuals_{split}")
            posts += labelled.calm_pages(load_exchanges("sample:calm"), stock, seed)
    if "kindness" in chosen:
        kind = sentences("", split)
        random.Random(seed).shuffle(kind)
        posts += labelled.merged(
            labelled.kindness_pages((one.text, one.hurts) for one in kind), SENTENCES_OF_PAGE
        )
    return posts


def chosen_corpora(names: str) -> set[str]:
    """The corpora that are named, by commas; one that there is not is a user's mistake."""
    chosen = {name.strip() for name in names.split(",") if name.strip()}
    if unknown := sorted(chosen - set(ALL_CORPORA)):
        raise UserError(f"corpora: there is no {unknown[0]!r}; there are {', '.join(ALL_CORPORA)}.")
    return chosen


def _by_kind(part: str) -> Callable[[str], list[Page]]:
    def pages(split: str) -> list[Page]:
        from rewards.reading.labelled import pages_by_kind
        from rewriting.data import load_exchanges

        return pages_by_kind(load_exchanges(f"sample:{part}_{split}"))

    return pages


def _machine(split: str) -> list[Page]:
    from rewards.reading.labelled import machine_pages

    return machine_pages(SAMPLE / f"machine_sentences_{split}.jsonl")


def _fits(split: str) -> list[Page]:
    from rewards.reading.labelled import fit_pages

    return fit_pages(SAMPLE / f"fits_{split}.jsonl")


def _lent(split: str) -> list[Page]:
    from rewards.reading.labelled import lent_pages

    return lent_pages(SAMPLE / f"lent_{split}.jsonl")


def _rewrites(split: str) -> list[Page]:
    from rewards.reading.labelled import rewrite_pages
    from rewriting.data import load_exchanges

    return rewrite_pages(load_exchanges(f"sample:rewrites_{split}"))


def _bank(split: str) -> list[Page]:
    """All of the bank is for training: nothing is measured on it."""
    from rewards.reading.labelled import bank_pages
    from rewriting.data.lent import lent_rows

    return bank_pages(lent_rows()) if split == "train" else []


CORPORA: Final[Mapping[str, Callable[[str], list[Page]]]] = {
    "machine": _machine,
    "fits": _fits,
    "lent": _lent,
    "rewrites": _rewrites,
    "bank": _bank,
    **{part: _by_kind(part) for part in PARTS},
}
"""The bundled corpora of labelled sentences under posts: their pages, by part."""
ALL_CORPORA: Final = (*CORPORA, "calm", "kindness")


def gate_bar(model: SenseModel, false_alarms: float) -> float:
    """The bar below which the output gate stops a sentence: no more of the right sentences of
    writers and agents, dev part, than this share."""
    rows = [row for rows in right_and_wrong("dev").values() for row in rows if row[2]]
    found = sorted(one.welcome for one in model.read([(post, text) for post, text, _, _ in rows]))
    return found[int(false_alarms * len(found))]


def labelled_exchanges(config: Config, split: str) -> list[Exchange]:
    """Exchanges with all three levels, without replies that are known not to fit their post."""
    from recipes.shared.sources import load_splits

    return [
        exchange
        for exchange in load_splits(config.data, seed=config.seed)[split]  # type: ignore[index]
        if exchange.empathy is not None and (exchange.extra.get("contrast") or {}).get("fits", True)
    ]


def fitted_bars(model: SenseModel, exchanges: Sequence[Exchange]) -> Bars:
    """The bars of the levels that give the best macro-F1 on labelled exchanges."""
    from rewards.identifiers.by_sentence import best_bars
    from rewards.identifiers.joint import JointIdentifier

    posts = [exchange.seeker_post for exchange in exchanges]
    replies = [exchange.response_post for exchange in exchanges]
    return best_bars(JointIdentifier(model, NO_BARS).readings(posts, replies), exchanges)


def weak_sentences(source: str) -> list[str]:
    """The stock sentences of counterfactuals: kind words that fit everybody."""
    from rewards.reading.blocks import sentences_by_kind
    from rewriting.data import load_exchanges

    return [
        text
        for exchange in load_exchanges(source)
        for kind, text in sentences_by_kind(exchange).items()
        if kind.endswith("_weak")
    ]


def measure(model: SenseModel, split: str) -> dict[str, Any]:
    """How well the probability of being welcome parts right sentences from the others, AUROC in
    percent; what a gate stops of both at the model's bar; and the mean for each kind."""
    figures: dict[str, Any] = {}
    for name, rows in right_and_wrong(split).items():
        found = [one.welcome for one in model.read([(post, text) for post, text, _, _ in rows])]
        right = [is_right for _, _, is_right, _ in rows]
        pairs = list(zip(found, right, strict=True))
        figures[name] = {
            "auroc": 100 * auroc(right, found),
            "stopped_right": 100 * mean([value < model.bar for value, good in pairs if good]),
            "stopped_wrong": 100 * mean([value < model.bar for value, good in pairs if not good]),
            "n": len(rows),
            "welcome": {
                kind: mean(
                    [value for value, row in zip(found, rows, strict=True) if row[3] == kind]
                )
                for kind in dict.fromkeys(kind for *_, kind in rows)
            },
        }
    return figures


def right_and_wrong(split: str) -> dict[str, list[tuple[str, str, bool, str]]]:
    """For each source of labelled sentences: post, sentence, whether it is right, its kind."""
    import json

    from rewards.reading.blocks import sentences_by_kind
    from rewards.reading.labelled import KINDS, MACHINE, fit_pages, lent_pages
    from rewriting.data import load_exchanges

    found = {
        part: [
            (exchange.seeker_post, text, KINDS[kind].true == 1.0, kind)
            for exchange in load_exchanges(f"sample:{part}_{split}")
            for kind, text in sentences_by_kind(exchange).items()
            if kind != "echo"  # neither right nor wrong
        ]
        for part in PARTS
    }
    for part, read in (("fits", fit_pages), ("lent", lent_pages)):
        found[part] = [
            (page.post, text, label.true == 1.0, "fits" if label.true else "does_not_fit")
            for page in read(SAMPLE / f"{part}_{split}.jsonl")
            for text, label in page.sentences
        ]
    lines = (SAMPLE / f"machine_sentences_{split}.jsonl").read_text(encoding="utf-8").splitlines()
    found["machine"] = [
        (row["seeker_post"], row["sentence"], MACHINE[row["label"]].true == 1.0, row["label"])
        for row in map(json.loads, lines)
    ]
    return found


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def card(config: Config, figures: dict[str, Any]) -> str:
    parts = []
    for name, one in figures["dev"].items():
        parts.append(
            f"\n**{name}** ({one['n']} sentences): AUROC {one['auroc']:.1f}; the gate stops "
            f"{one['stopped_right']:.1f} % of the right ones and {one['stopped_wrong']:.1f} % of "
            "the others.\n"
        )
        parts.append("| kind | mean probability of being welcome |\n|---|---:|")
        parts += [f"| {kind} | {value:.2f} |" for kind, value in one["welcome"].items()]
    return CARD.format(
        encoder=config.encoder,
        layers=f", its first {config.layers} layers," if config.layers else "",
        rank=config.rank,
        command=command("sense", config),
        data=config.data.replace(",", ", "),
        dev="\n".join(parts),
        **{name: figures[name] for name in ("pages", "sentences", "step")},
    )


CARD = """# sense: is this sentence right for this post, or only about it?

`{encoder}`{layers} with LoRA of rank {rank} and a linear head. It reads post and sentence together,
and stands behind the reward `sense` and the output gate.

- Trained on {sentences:,} sentences on {pages:,} pages, a post each: sentences that writers of ours
  put under posts, right and wrong on purpose (rewriting/sample/SENSE.md, COUNTERFACTUALS.md), kind
  sentences that fit one post and not another (FITS.md), sentences that were said to somebody else
  (LENT.md), the labelled sentences of our own agents (MACHINE_SENTENCES.md), the new sentences of
  the rewrites (REWRITES.md), kindness sentences without a post, calm exchanges, and the labelled
  exchanges of {data}.
- Kept: the step with the lowest dev loss, {step}.
- Command: `{command}`

## On the dev part (other writers, other posts; the step was chosen there)
{dev}

## Limits
It knows what writers of ours and small agents get wrong. A wrong detail that is plausible passes
often. Trained on texts by one kind of language model. English only; not validated for clinical use.
"""
