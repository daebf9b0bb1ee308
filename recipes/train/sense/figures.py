"""What `train.py sense` chooses on the dev part, what it measures, and the card of its model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recipes.shared.cards import command
from recipes.train.sense.pages import PARTS
from rewriting.data.load import SAMPLE
from rewriting.statistics.classification import auroc

if TYPE_CHECKING:
    from recipes.train.sense.recipe import Config
    from rewards.identifiers.by_sentence import Bars
    from rewards.reading.sense_model import SenseModel
    from rewriting.exchange import Exchange

NO_BARS = ((0.5,) * 3, (0.5,) * 3)  # until they are fitted


def gate_bar(model: SenseModel, false_alarms: float) -> float:
    """The bar below which the output gate stops a sentence: no more of the right sentences of
    writers and agents, dev part, than this share."""
    rows = [row for rows in right_and_wrong("dev").values() for row in rows if row[2]]
    found = sorted(one.welcome for one in model.read([(post, text) for post, text, _, _ in rows]))
    return found[int(false_alarms * len(found))]


def fitted_bars(model: SenseModel, exchanges: Sequence[Exchange]) -> Bars:
    """The bars of the levels that give the best macro-F1 on labelled exchanges."""
    from rewards.identifiers.by_sentence import best_bars
    from rewards.identifiers.joint import JointIdentifier

    posts = [exchange.seeker_post for exchange in exchanges]
    replies = [exchange.response_post for exchange in exchanges]
    return best_bars(JointIdentifier(model, NO_BARS).readings(posts, replies), exchanges)


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
