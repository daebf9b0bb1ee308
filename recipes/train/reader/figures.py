"""What `train.py reader` measures beside levels, and the card of its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recipes.shared.cards import command
from rewriting.exchange import MECHANISMS

if TYPE_CHECKING:
    from recipes.train.reader.recipe import Config
    from rewriting.exchange import Exchange


def kind_figures(identifier: Any, exchanges: list[Exchange]) -> dict[str, dict[str, float]]:
    """Per kind of counterfactual sentence: mean contrast, and the mean expected level it earns."""
    from rewards.reading.blocks import sentences_by_kind

    figures: dict[str, dict[str, float]] = {}
    for kind in sentences_by_kind(exchanges[0]):
        pairs = [(e.seeker_post, sentences_by_kind(e)[kind]) for e in exchanges]
        readings = identifier.reader.read(pairs)
        found = identifier.assess([post for post, _ in pairs], [text for _, text in pairs])
        figures[kind] = {"contrast": sum(one.contrast for one in readings) / len(pairs)}
        for mechanism in MECHANISMS:
            levels = [one.judgements[mechanism].expected_level for one in found]
            figures[kind][mechanism] = sum(levels) / len(levels)
    return figures


def card(config: Config, figures: dict[str, Any]) -> str:
    names = ("accuracy", "macro_f1", "token_f1", "iou_f1")
    dev = [
        f"| {mechanism} | "
        + " | ".join(f"{figures['dev'][mechanism][n]:.1f}" for n in names)
        + " |"
        for mechanism in MECHANISMS
    ]
    kinds = [
        f"| {kind} | {one['contrast']:.2f} | "
        + " | ".join(f"{one[mechanism]:.2f}" for mechanism in MECHANISMS)
        + " |"
        for kind, one in figures["kinds"].items()
    ]
    return CARD.format(
        encoder=config.encoder,
        second=(
            f"Contrast is the mean of its own opinion and that of the frozen `{config.second}`."
            if config.second
            else "Nobody else is asked about contrast."
        ),
        rank=config.rank,
        data=config.data.replace(",", ", "),
        dialogues=config.dialogues or "none",
        step=figures["step"],
        command=command("reader", config),
        dev="\n".join(dev),
        kinds="\n".join(kinds),
    )


CARD = """# reader: does this sentence answer this post, and what kind of empathy is it?

`{encoder}` with LoRA of rank {rank} and four small heads. Behind the identifier `grounded` and the
reward term `contrast`.

- Labelled data: {data} (split by seeker, `rewriting.data.split_of`); dialogues: {dialogues};
  counterfactuals of our own (rewriting/sample/COUNTERFACTUALS.md), their writers parted: four
  for training, one for the rules, one for test.
- {second}
- Kept: the step with the lowest dev loss, {step}. The rules for levels and their bars are fitted on
  the dev part, so the figures below flatter; docs/results/reward.md says what is known beyond them.
- Command: `{command}`

## What counterfactual sentences earn (dev writer)
Mean contrast in nats, and the mean expected level, alone under their post.

| kind | contrast | emotional reactions | interpretations | explorations |
|---|---:|---:|---:|---:|
{kinds}

## Levels and rationales on labelled dev exchanges
| mechanism | accuracy | macro-F1 | token-F1 | IOU-F1 |
|---|---:|---:|---:|---:|
{dev}

## Limits
It reads sentence by sentence, so a story that is told over several counts by its best sentence.
It knows topics and tones better than facts: a sentence that presupposes a thing the post does not
mention may pass. English only; not validated for clinical use.
"""
