"""Train the policy that lends: where to edit a reply, and which kind sentence of others to say.

Two stages. The warm start learns by supervision which sentences fit a post (the fits) and where
people edit a reply (the written edits). Then reinforcement learning, as in `train.py partner`:
every reply is rewritten several times, and what scored better than its fellows becomes likelier.

    python train.py bank --output runs/bank
    python train.py bank --from_policy bank --warm_steps 0 --rewards '{my_rewards.py:kinder: 1}'

Only small heads are trained, on what a frozen encoder says of every sentence under its post, so a
step costs little more than its rewards. docs/bank.md.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policies.choosing.settings import ChoosingSettings
from policies.training.reinforce.settings import Settings
from recipes.shared.accelerator import start_accelerator
from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.reinforcement import before_and_after, reinforce, save_policy
from recipes.shared.settings import PARTNER_REWARDS, Edited, Shared, check_kl, columns_field
from rewriting.errors import UserError
from rewriting.runtime.seeds import derive_seed
from rewriting.runtime.settings import borrowed, check_bounds, given, lasting, setting

if TYPE_CHECKING:
    from policies.choosing.agent import ChoosingAgent
    from policies.choosing.learning import Lesson
    from rewriting.data import Split
    from rewriting.exchange import Exchange

logger = logging.getLogger(__name__)
REWARDS = PARTNER_REWARDS.replace("sense: 16.0", "sense: {weight: 16.0, floor: 0.6}")
"""Gentler than what ranks candidates in use: under that a policy would learn to keep every reply
before it has learnt what fits."""


@dataclass
class Config:
    """Settings of `train.py bank`."""

    output: str = setting(
        "runs/bank",
        "Folder for the policy, checkpoints, log and curves. Give the same folder again to resume "
        "a run.",
        may_change=True,
    )
    data: str = field(
        default="sample:rewrites",
        metadata={
            "help": "Exchanges to train on: files, folders, hub ids or sample, separated by "
            "commas; those with written edits teach the warm start where to edit."
        },
    )
    columns: str = columns_field()
    keep_crisis: bool = borrowed(Edited, "keep_crisis")
    from_policy: str = field(
        default="",
        metadata={"help": "Policy to start from: bank (shipped) or a folder; '': a new one."},
    )
    encoder_from: str = field(
        default="",
        metadata={
            "help": "Folder of a sense model whose encoder a new policy reads with; '': the "
            "shipped one."
        },
    )
    identifier: str = borrowed(Edited, "identifier")
    rewards: str = borrowed(Edited, "rewards", REWARDS)
    reward_batch_size: int = borrowed(Shared, "reward_batch_size")
    width: int = borrowed(ChoosingSettings, "width")
    choices: int = borrowed(ChoosingSettings, "choices")
    least_welcome: float = borrowed(ChoosingSettings, "least_welcome")
    pool: int = borrowed(ChoosingSettings, "pool")
    span_length: int = borrowed(Settings, "span_length")
    max_edits: int = borrowed(Settings, "max_edits", 2)
    temperature: float = borrowed(Shared, "temperature", 0.5)
    top_p: float = borrowed(Shared, "top_p")

    warm_steps: int = borrowed(Edited, "warm_steps", 40)
    warm_batch_size: int = borrowed(Edited, "warm_batch_size", 32)
    warm_learning_rate: float = setting(
        1e-3, "Peak learning rate of the warm start.", above=0, greatest=1
    )

    steps: int = borrowed(Settings, "steps", 48, "Steps of reinforcement learning; 0: none.")
    batch_size: int = borrowed(Settings, "batch_size", 8, "Exchanges per step, over all processes.")
    num_samples: int = borrowed(Settings, "num_samples", 8)
    sentences_per_position: int = borrowed(Settings, "sentences_per_position")
    max_empathy: int = borrowed(Edited, "max_empathy")
    estimator: str = borrowed(Settings, "estimator")
    inner_epochs: int = borrowed(Settings, "inner_epochs")
    clip: float = borrowed(Settings, "clip")
    normalise: bool = borrowed(Settings, "normalise", True)
    learning_rate: float = borrowed(Settings, "learning_rate", 5e-4)
    weight_decay: float = borrowed(Settings, "weight_decay")
    max_grad_norm: float = borrowed(Settings, "max_grad_norm")
    kl_weight: float = borrowed(Shared, "kl_weight", 0.1)
    kl_target: float = borrowed(Shared, "kl_target")
    kl_horizon: float = borrowed(Shared, "kl_horizon")
    entropy_weight: float = borrowed(Settings, "entropy_weight", 0.1)
    micro_batch_size: int = borrowed(Settings, "micro_batch_size", 64)
    dev_rows: int = borrowed(Shared, "dev_rows", 32)
    eval_every: int = borrowed(Settings, "eval_every", 12)
    keep_best: bool = borrowed(Settings, "keep_best")
    save_every: int = borrowed(Settings, "save_every", 8)
    show_every: int = borrowed(Settings, "show_every", 8)
    report_to: str = borrowed(Shared, "report_to")
    timeout_minutes: float = borrowed(Shared, "timeout_minutes")
    half: bool = borrowed(Shared, "half")
    seed: int = borrowed(Settings, "seed")


def run(config: Config) -> dict[str, Any]:
    """Build or load the policy, warm it up, reinforce it, save it; the figures."""
    from policies.training.reinforce.loop import check_settings
    from recipes.shared.sources import load_splits
    from rewards.named import Models, build_rewards

    check(config)
    accelerator = start_accelerator("bank", config, lasting(config))
    if config.steps:  # what the loop would refuse, said before anything is loaded
        check_settings(given(Settings, config), accelerator, ["unknown"], range(config.dev_rows))
    splits = load_splits(
        config.data, seed=config.seed, keep_crisis=config.keep_crisis, columns=config.columns
    )
    agent = start_agent(config)
    models = Models(identifier=config.identifier, batch_size=config.reward_batch_size or None)
    reward = build_rewards(config.rewards, models)
    figures: dict[str, Any] = {"rows": {name: len(rows) for name, rows in splits.items()}}
    if config.warm_steps:
        figures["warm"] = warm_up(config, agent, splits, accelerator)
    output = Path(config.output)
    if config.steps:
        figures |= reinforce("bank", config, agent, reward, splits, accelerator)
    accelerator.end_training()
    if accelerator.is_main_process:
        save_policy(config, agent, output / "policy")
        write_card(output / "policy", config, figures, card(config, figures))
        tell_ending("bank", output)
    return figures


def check(config: Config) -> None:
    """Say what cannot work before anything is loaded; the loop checks its own sizes."""
    from policies.choosing.settings import read_settings
    from policies.named import policy_folder

    check_bounds(config)
    check_kl(config)
    if config.from_policy:
        read_settings(policy_folder(config.from_policy))
    elif not config.warm_steps:
        raise UserError("a new policy (from_policy '') needs a warm start: set warm_steps, say 40.")


def start_agent(config: Config) -> ChoosingAgent:
    """The policy to train: from a folder, or a new one that reads as the sense model does."""
    from policies.choosing.agent import ChoosingAgent
    from policies.choosing.heads import VERDICTS
    from policies.named import policy_folder

    changes: dict[str, Any] = {
        "choices": config.choices,
        "least_welcome": config.least_welcome,
        "pool": config.pool,
        "span_length": config.span_length,
        "max_edits": config.max_edits,
        "temperature": 1.0,
        "top_p": 1.0,
    }
    if config.from_policy:
        return ChoosingAgent.load(policy_folder(config.from_policy), trainable=True, **changes)
    from rewards.reading.sense_model import SHIPPED, read_settings
    from rewriting.runtime.files.tensors import load_tensors

    folder = Path(config.encoder_from).expanduser() if config.encoder_from else SHIPPED
    read = read_settings(folder)
    tensors = load_tensors(folder / "sense.safetensors")
    settings = ChoosingSettings(
        rank=read["rank"], layers=read["layers"], frozen_layers=read.get("frozen_layers", 0),
        max_tokens=read["max_tokens"], width=config.width, **changes,
    )  # fmt: skip
    lora = {name: tensor for name, tensor in tensors.items() if ".lora_" in name}
    verdicts = {name: tensors[f"head.{name}"][:VERDICTS] for name in ("weight", "bias")}
    return ChoosingAgent(
        settings, encoder=read["encoder"], lora=lora, verdicts=verdicts, seed=config.seed
    )


def warm_up(
    config: Config, agent: ChoosingAgent, splits: dict[Split, list[Exchange]], accelerator: Any
) -> dict[str, Any]:
    """Train the heads by supervision, and keep the policy that this gives beside the run's."""
    from policies.choosing.learning import lesson_loss
    from rewriting.runtime.training.supervised import train

    lessons = {name: lessons_of(config, splits[name], name) for name in ("train", "dev")}
    logger.info(
        "warm start: %d examples to train on, %d for dev",
        len(lessons["train"]),
        len(lessons["dev"]),
    )
    folder = Path(config.output) / "warm_start"
    every = max(1, config.warm_steps // 6)
    best = train(
        agent.module,
        lambda batch: lesson_loss(agent, batch),
        lessons["train"],
        lessons["dev"],
        output=folder,
        accelerator=accelerator,
        steps=config.warm_steps,
        batch_size=config.warm_batch_size,
        micro_batch_size=config.warm_batch_size,
        learning_rate=config.warm_learning_rate,
        weight_decay=0.01,
        eval_every=every,
        save_every=every,
        seed=config.seed,
        settings=warm_settings(config),
        size=lambda lesson: lesson.size,
        title="warm start",
    )
    if accelerator.is_main_process:
        save_policy(config, agent, folder / "policy")
    return {"step": best.step, "dev_loss": best.dev_loss}


def warm_settings(config: Config) -> dict[str, Any]:
    """What the warm start depends on: later choices about the rewards do not undo it."""
    later = {one.name for one in fields(Settings)} | {one.name for one in fields(Shared)}
    kept = {"seed", "span_length"}
    return {
        name: value
        for name, value in lasting(config).items()
        if name in kept or name not in later | {"identifier", "rewards", "max_empathy"}
    }


def lessons_of(config: Config, exchanges: list[Exchange], part: str) -> list[Lesson]:
    """What to learn from the fits and from written edits; their order follows from the seed."""
    import random

    from policies.choosing.learning import Lesson, fitting_lessons
    from policies.editing.written_edits import build_written

    edits = build_written(exchanges, span_length=config.span_length)
    lessons = [Lesson(row.state, row.position) for row in edits]
    replies = sorted({row.state.exchange.response_post for row in edits})
    if not replies:
        raise UserError(f"{config.data} has no written edits; sample:rewrites has.")
    seed = derive_seed(config.seed, "lessons", part)
    lessons += fitting_lessons(part, replies, span_length=config.span_length, seed=seed)
    random.Random(seed).shuffle(lessons)
    return lessons


def card(config: Config, figures: dict[str, Any]) -> str:
    return CARD.format(
        data=config.data,
        train=figures["rows"]["train"],
        start=config.from_policy or f"a warm start of {config.warm_steps} steps",
        steps=config.steps,
        batch=config.batch_size,
        samples=config.num_samples,
        rewards=config.rewards,
        command=command("bank", config),
        results=before_and_after(figures),
    )


CARD = """# bank: a policy that lends kind sentences of others

It reads post and reply, chooses a place, and says there one of the sentences that kind people said
to somebody in a similar place, or leaves the reply as it is. It writes no words of its own.

- Data: {data}, the train part of it ({train} replies).
- Start: {start}. Then {steps} steps of reinforcement learning, {batch} replies a step, {samples}
  rewrites of each.
- Rewards: `{rewards}`
- Command: `{command}`

## Results
{results}

## Limits
It can only say what is in the bank: two people with the same trouble may get the same words, and
it names no detail of a post. Most sentences were written by a language model. English only. What
it gives has to be read by a person before anybody in distress sees it. Not validated for clinical
use.
"""
