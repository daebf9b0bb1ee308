"""The first stage of `train.py emprl`, and the conversations that both stages train on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.cards import command, write_card
from recipes.shared.reinforcement import save_policy
from rewriting.errors import UserError
from rewriting.exchange import Exchange

if TYPE_CHECKING:
    from policies.generating.generator import Generator
    from policies.generating.settings import GeneratorSettings
    from recipes.train.emprl.recipe import Config
    from rewriting.data import Split


def conversations(
    data: str, *, max_rows: int = 0, seed: int = 0, keep_crisis: bool = True
) -> dict[Split, list[Exchange]]:
    """Exchanges for train and dev, whole conversations in one of them. data: sources by commas.

    A folder with a train file, such as EmpatheticDialogues, has files for testing as well: of such
    a folder the train file alone is read, and the tenth of it that `split_of` calls dev is dev.
    Everything else is split as in the other recipes, and its test part is left alone. max_rows: at
    most so many of each source and split. keep_crisis: False leaves out what the safety gate calls
    a crisis.
    """
    from recipes.shared.sources import load_splits, sources_of

    files = {source: train_file(source) for source in sources_of(data)}
    parts = [
        train_file_splits(file, max_rows=max_rows, seed=seed, keep_crisis=keep_crisis)
        for file in files.values()
        if file is not None
    ]
    others = ",".join(source for source, file in files.items() if file is None)
    if others or not parts:
        parts.append(load_splits(others, max_rows=max_rows, seed=seed, keep_crisis=keep_crisis))
    return {name: [row for part in parts for row in part[name]] for name in parts[0]}


def train_file_splits(
    file: Path, *, max_rows: int, seed: int, keep_crisis: bool
) -> dict[Split, list[Exchange]]:
    """Train and dev of a file that is all for training."""
    from recipes.shared.sources import drawn, without_crises
    from rewriting.data import load_exchanges, split_of, without_duplicates

    parts: dict[Split, list[Exchange]] = {"train": [], "dev": [], "test": []}
    for exchange in without_duplicates(load_exchanges(file)):
        parts["dev" if split_of(exchange) == "dev" else "train"].append(exchange)
    if not parts["train"] or not parts["dev"]:
        raise UserError(f"{file}: too little data to train on.")
    chosen = {name: drawn(rows, max_rows, seed) for name, rows in parts.items()}
    return chosen if keep_crisis else without_crises(chosen, str(file))


def train_file(data: str) -> Path | None:
    """The file that a folder's name gives away as the one to train on."""
    from rewriting.data.rows import READERS

    folder = Path(data).expanduser()
    if not folder.is_dir():
        return None
    files = sorted(file for file in folder.glob("train.*") if file.suffix.lower() in READERS)
    return files[0] if files else None


def supervise(
    config: Config,
    generator: Generator,
    splits: dict[Split, list[Exchange]],
    accelerator: Any,
) -> dict[str, Any]:
    """Learn to respond as people do, and keep what this gives in OUTPUT/sft/policy."""
    from recipes.shared.sources import drawn
    from rewriting.runtime.training.supervised import train

    folder = Path(config.output) / "sft"
    every = max(1, config.sft_steps // 10)
    best = train(
        generator.module,
        generator.supervised_loss,
        splits["train"],
        drawn(splits["dev"], config.sft_dev_rows, config.seed),
        output=folder,
        accelerator=accelerator,
        steps=config.sft_steps,
        batch_size=config.sft_batch_size,
        micro_batch_size=config.sft_micro_batch_size,
        learning_rate=config.sft_learning_rate,
        average=config.sft_average,
        eval_every=every,
        save_every=every,
        seed=config.seed,
        settings=sft_settings(config),
        size=length,
        layers=generator.layers,
        title="supervised",
    )
    figures = {"step": best.step, "dev_loss": best.dev_loss, "train_rows": len(splits["train"])}
    if accelerator.is_main_process:
        save_policy(config, generator, folder / "policy")
        write_card(folder / "policy", config, figures, sft_card(config, generator, figures))
    return figures


def length(exchange: Exchange) -> int:
    """The length of a row in characters, by which micro-batches take similar ones."""
    return sum(map(len, exchange.history)) + len(exchange.seeker_post)


def sft_settings(config: Config) -> dict[str, Any]:
    """What the first stage depends on: later choices about rewards do not undo it."""
    names = (
        "data max_rows keep_crisis model attention load_in_4bit compile adapter num_virtual_tokens "
        "rank max_context_tokens max_new_tokens sft_steps sft_batch_size sft_learning_rate "
        "sft_average sft_dev_rows seed"
    )
    return {name: getattr(config, name) for name in names.split()}


def sft_card(config: Config, generator: Generator, figures: dict[str, Any]) -> str:
    from math import exp

    return SFT_CARD.format(
        model=generator.model_name,
        adapter=describe(generator.settings),
        data=config.data,
        command=command("emprl", config),
        perplexity=exp(figures["dev_loss"]),
        temperature=config.temperature,
        top_p=config.top_p,
        **figures,
    )


def describe(settings: GeneratorSettings) -> str:
    """The adapter in words."""
    if settings.adapter == "prefix":
        return f"a prefix of {settings.num_virtual_tokens} virtual tokens"
    return f"LoRA of rank {settings.rank}"


def shown(rows: Sequence[Exchange]) -> str:
    """How much there is, for the log."""
    with_history = sum(bool(row.history) for row in rows)
    return f"{len(rows):,} exchanges, {with_history:,} with earlier turns"


SFT_CARD = """# emprl-sft: a generator of supportive responses, trained by supervision

The first stage of EmpRL (arXiv 2408.02976): `{model}` stays as it is, {adapter} learnt what people
answered. Where PPO starts from, and what it stays close to.

- Data: the train part of {data} ({train_rows} exchanges).
- Best dev loss {dev_loss:.3f} per token (perplexity {perplexity:.1f}), after {step} steps.
- Command: `{command}`
- In use it samples at temperature {temperature} with top-p {top_p}.
- Limits: a small model's small talk. It was not trained to be empathic, only to respond as the
  people of its data did. A person has to read what it writes before anybody in distress does.
"""
