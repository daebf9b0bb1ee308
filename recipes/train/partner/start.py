"""The first stage of `train.py partner`: supervision, shown before it is used, then learnt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.cards import command, write_card
from recipes.shared.reinforcement import save_policy
from recipes.shared.sources import sources_of
from rewriting.exchange import Exchange

if TYPE_CHECKING:
    from policies.editing.agent import EditAgent
    from recipes.train.partner.recipe import Config
    from rewriting.data import Split


def warm_up(
    config: Config, agent: EditAgent, splits: dict[Split, list[Exchange]], accelerator: Any
) -> None:
    """Train both heads by supervision, and keep the policy that this gives beside the run's."""
    from policies.editing.warm_start import supervised_loss
    from rewriting.runtime.training.supervised import train

    rows = {name: supervision(config, splits[name], name) for name in ("train", "dev")}
    if accelerator.is_main_process:
        show_supervision(rows["train"])
    folder = Path(config.output) / "warm_start"
    best = train(
        agent.module,
        lambda batch: supervised_loss(agent, batch),
        rows["train"],
        rows["dev"][:200],
        output=folder,
        accelerator=accelerator,
        steps=config.warm_steps,
        batch_size=config.warm_batch_size,
        micro_batch_size=config.micro_batch_size,
        learning_rate=config.warm_learning_rate,
        rate_factors={"position_head": config.head_factor},
        eval_every=max(1, config.warm_steps // 6),
        save_every=max(1, min(50, config.warm_steps // 6)),
        seed=config.seed,
        settings=warm_settings(config),
        size=lambda row: row.size,
        layers=agent.layers,
        title="warm start",
    )
    if accelerator.is_main_process:
        save_policy(config, agent, folder / "policy")
        figures = {"step": best.step, "dev_loss": best.dev_loss}
        write_card(folder / "policy", config, figures, warm_card(config, figures))


def supervision(config: Config, exchanges: Sequence[Exchange], part: str = "train") -> list[Any]:
    """What to learn from exchanges: edits that somebody wrote where there are any, and empathic
    responses that are undone; and sentences that fit a post, of that part of their corpora. In an
    order that follows from the seed."""
    import random

    from policies.editing.fitting_sentences import build_fitting
    from policies.editing.warm_start import build
    from policies.editing.written_edits import build_written
    from rewriting.runtime.seeds import derive_seed

    rows = build(exchanges, span_length=config.span_length, seed=config.seed)
    rows += build_written(exchanges, span_length=config.span_length)
    rows += build_fitting(
        sources_of(config.sentences), part, span_length=config.span_length, seed=config.seed
    )
    random.Random(derive_seed(config.seed, "supervision")).shuffle(rows)
    return rows


def warm_settings(config: Config) -> dict[str, Any]:
    """What the warm start depends on: later choices about the rewards do not undo it."""
    names = (
        "data sentences keep_crisis from_policy model attention load_in_4bit compile rank alpha "
        "lora_layers span_length max_prompt_tokens max_new_tokens warm_steps warm_batch_size "
        "warm_learning_rate head_factor seed"
    )
    return {name: getattr(config, name) for name in names.split()}


def show_supervision(rows: Sequence[Any]) -> None:
    """Counts per kind of supervision, and a few examples."""
    from policies.editing.warm_start import examples, summary
    from recipes.shared.tables import print_table

    counts = [
        [kind, *(f"{number:.0f}" for number in n.values())] for kind, n in summary(rows).items()
    ]
    print_table("warm start", ["kind", "rows", "different", "% of all", "words"], counts)
    shown = [
        [f"{row['operation']} {row['position'] or ''}", " / ".join(row["span"]), row["sentence"]]
        for row in examples(rows, 4)
    ]
    cut = [[cell if len(cell) < 90 else cell[:89] + "…" for cell in row] for row in shown]
    print_table("examples", ["edit", "what is there", "what to say"], cut)


def warm_card(config: Config, figures: dict[str, Any]) -> str:
    return WARM_CARD.format(
        model=config.model, data=config.data, command=command("partner", config), **figures
    )


WARM_CARD = """# partner-start: an edit policy after its warm start

On `{model}`, trained by supervision alone on {data}: a sentence that carries empathy was taken out
of a response, or a weak one put in its place, and the policy learnt where and what to say. Best dev
loss {dev_loss:.3f}, after {step} steps. Where reinforcement learning starts from.

- Command: `{command}`
- Limits: it writes what peers write, good or bad; it was not trained to be empathic, only to edit.
"""
