"""The card of `train.py identifier`: what the model was trained on, and how it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recipes.shared.cards import command
from rewriting.exchange import MECHANISMS

if TYPE_CHECKING:
    from recipes.train.identifier.recipe import Config


def mean_of(figures: dict[str, dict[str, float]], name: str) -> float:
    return sum(figures[mechanism][name] for mechanism in MECHANISMS) / len(MECHANISMS)


def card(config: Config, figures: dict[str, Any]) -> str:
    names = ("accuracy", "macro_f1", "token_f1", "iou_f1")
    lines = []
    for split in ("dev", "test"):
        if split in figures:
            for mechanism in MECHANISMS:
                cells = (f"{figures[split][mechanism][name]:.1f}" for name in names)
                lines.append(f"| {split} | {mechanism} | {' | '.join(cells)} |")
            cells = (f"{mean_of(figures[split], name):.1f}" for name in names)
            lines.append(f"| {split} | **mean** | {' | '.join(cells)} |")
    rows = figures["rows"]
    return CARD.format(
        encoder=config.encoder,
        arrangement=config.arrangement,
        tuning=f"LoRA of rank {config.rank}" if config.rank else "full fine-tuning",
        data=config.data,
        extra=config.extra_data or "nothing",
        train=rows["train"],
        dev=rows["dev"],
        test=rows["test"],
        step=figures["step"],
        command=command("identifier", config),
        results="\n".join(lines),
    )


CARD = """# identifier: how empathic is a response, and where does it show?

EPITOME's bi-encoder with seeker-aware attention (arXiv 2009.08441) on `{encoder}`, arrangement
`{arrangement}`, {tuning}: for emotional reactions, interpretations and explorations a level (0, 1,
2) with calibrated probabilities, and the words that carry it.

- Data: {data}, split by seeker (`rewriting.data.split_of`), duplicates dropped; for training alone
  also: {extra}. {train} pairs to train on, {dev} for dev, {test} for test, which took no part in
  training or in any choice.
- Kept: the best step on dev by the F1 of some against none and of the rationales, {step}. Weak or
  strong is a linear rule on the rationale, fitted on train and dev (with the further rows where
  they helped in cross-validation); the gate and the rationale thresholds were calibrated on dev.
  So the dev figures below flatter; test is what counts.
- Command: `{command}`

## Results
In percent; rationales counted over words, an example without any and none found counts as 1.

| split | mechanism | accuracy | macro-F1 | token-F1 | IOU-F1 |
|---|---|---:|---:|---:|---:|
{results}

## Limits
Trained on English peer support on Reddit, by annotators of one study. It reads mostly the surface:
kind words in the wrong place are called empathic too (`python evaluate.py probe`). Weak levels are
rare in the data and the least certain. A measure for research and feedback; not a diagnosis of
anybody, and not validated for clinical use.
"""
