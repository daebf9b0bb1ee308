"""Train PARTNER's edit policy: where to edit a reply, and what to say there.

Two stages (arXiv 2101.07714). The warm start learns by supervision, from empathic responses whose
empathic sentence was taken out; `warm_steps 0` leaves it out and goes on from `from_policy`. Then
reinforcement learning: every exchange is rewritten several times, every rewrite is scored, and
what scored better than its fellows becomes likelier.

    python train.py                                         # a quick run on the bundled sample
    accelerate launch train.py partner --config configs/partner.yaml
    python train.py partner --rewards '{empathy_change: 1, my_rewards.py:shorter: 0.1}'

The policy is written to OUTPUT/policy: `rewriting rewrite --policy OUTPUT/policy` uses it,
`evaluate.py rewrites --systems original,OUTPUT/policy` measures it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policies.training.reinforce.settings import Settings
from recipes.shared.accelerator import share_of, start_accelerator
from recipes.shared.cards import write_card
from recipes.shared.ending import tell_ending
from recipes.shared.reinforcement import reinforce, save_policy
from recipes.shared.settings import (
    Edited,
    Shared,
    check_kl,
    columns_field,
    model_options,
)
from recipes.train.partner.card import card
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.models.options import ModelOptions
from rewriting.runtime.settings import borrowed, check_bounds, given, lasting, setting
from rewriting.words import counted

if TYPE_CHECKING:
    from policies.editing.agent import EditAgent
    from rewriting.data import Split

logger = logging.getLogger(__name__)


@dataclass
class Config:
    """Settings of `train.py partner`. The defaults are the quick run on the bundled sample."""

    output: str = setting(
        "runs/partner",
        "Folder for the policy, checkpoints, log and curves. Give the same folder again to resume "
        "a run.",
        may_change=True,
    )
    data: str = field(
        default="sample",
        metadata={
            "help": "Exchanges to train on, labelled ones for a warm start: files, folders, hub "
            "ids or sample, separated by commas."
        },
    )
    columns: str = columns_field()
    sentences: str = field(
        default="",
        metadata={
            "help": "Posts with sentences that fit them, from which the warm start also learns "
            "what to say: sample:sense, sample:fits; '': none."
        },
    )
    keep_crisis: bool = borrowed(Edited, "keep_crisis")
    from_policy: str = field(
        default="partner-start",
        metadata={
            "help": "Policy to start from: partner-start (shipped) or a folder; '': a new one."
        },
    )
    model: str = field(
        default="smollm2-135m",
        metadata={
            "help": "Causal language model of a new policy: a short name, a folder or a hub id."
        },
    )
    attention: str = borrowed(ModelOptions, "attention")
    load_in_4bit: bool = borrowed(ModelOptions, "load_in_4bit")
    compile: bool = borrowed(ModelOptions, "compile")
    identifier: str = borrowed(Edited, "identifier")
    rewards: str = borrowed(Edited, "rewards")
    reward_batch_size: int = borrowed(Shared, "reward_batch_size")
    rank: int = setting(
        16, "Rank of the LoRA matrices of a new policy; 0: the whole model is trained.", least=0
    )
    alpha: int = field(
        default=32, metadata={"help": "LoRA alpha: the update is scaled by alpha / rank."}
    )
    lora_layers: str = field(
        default="",
        metadata={
            "help": "Layers that get LoRA matrices, separated by commas; '': those of the "
            "attention."
        },
    )
    span_length: int = borrowed(Settings, "span_length")
    max_edits: int = borrowed(Settings, "max_edits")
    max_prompt_tokens: int = setting(
        256, "Maximum length of a prompt, in tokens; longer posts are cut to fit.", least=1
    )
    max_new_tokens: int = setting(32, "Maximum length of a new sentence, in tokens.", least=1)

    temperature: float = borrowed(Shared, "temperature")
    top_p: float = borrowed(Shared, "top_p")

    warm_steps: int = borrowed(Edited, "warm_steps")
    warm_batch_size: int = borrowed(Edited, "warm_batch_size")
    warm_learning_rate: float = setting(5e-4, "Peak learning rate of the warm start.", least=0)
    head_factor: float = setting(
        4.0,
        "Learning rate of the position head in the warm start, as a multiple of "
        "warm_learning_rate.",
        least=0,
    )

    steps: int = borrowed(Settings, "steps", 16, "Steps of reinforcement learning; 0: none.")
    batch_size: int = borrowed(Settings, "batch_size", 4, "Exchanges per step, over all processes.")
    num_samples: int = borrowed(Settings, "num_samples")
    sentences_per_position: int = borrowed(Settings, "sentences_per_position")
    max_empathy: int = borrowed(Edited, "max_empathy")
    estimator: str = borrowed(Settings, "estimator")
    inner_epochs: int = borrowed(Settings, "inner_epochs")
    clip: float = borrowed(Settings, "clip")
    normalise: bool = borrowed(Settings, "normalise")
    learning_rate: float = borrowed(Settings, "learning_rate", 3e-4)
    weight_decay: float = borrowed(Settings, "weight_decay")
    max_grad_norm: float = borrowed(Settings, "max_grad_norm")
    kl_weight: float = borrowed(Shared, "kl_weight")
    kl_target: float = borrowed(Shared, "kl_target")
    kl_horizon: float = borrowed(Shared, "kl_horizon")
    entropy_weight: float = borrowed(Settings, "entropy_weight", 0.05)
    micro_batch_size: int = borrowed(
        Settings,
        "micro_batch_size",
        8,
        "Actions in memory at once, per process; it changes no result.",
    )
    gradient_checkpointing: bool = setting(
        False,
        "Recompute activations in the backward pass instead of keeping them: less memory, more "
        "time, the same result.",
        may_change=True,
    )
    dev_rows: int = borrowed(Shared, "dev_rows", 16)
    eval_every: int = borrowed(Settings, "eval_every", 8)
    keep_best: bool = borrowed(Settings, "keep_best")
    save_every: int = borrowed(Settings, "save_every", 10)
    show_every: int = borrowed(Settings, "show_every", 8)
    report_to: str = borrowed(Shared, "report_to")
    timeout_minutes: float = borrowed(Shared, "timeout_minutes")
    half: bool = borrowed(Shared, "half")
    seed: int = borrowed(Settings, "seed")


def run(config: Config) -> dict[str, Any]:
    """Build or load the policy, warm it up, reinforce it, save it; the figures."""
    from policies.editing.recomputing import layers_of
    from policies.training.reinforce.loop import check_settings
    from recipes.train.partner.start import warm_up
    from rewards.named import Models, build_rewards

    check(config)
    accelerator = start_accelerator("partner", config, lasting(config))
    count = accelerator.num_processes
    logger.info(
        "%s on %s: %s", counted(count, "process"), accelerator.device, shares(config, count)
    )
    if config.steps:  # what the loop would refuse, said before the warm start
        check_settings(given(Settings, config), accelerator, ["unknown"], range(config.dev_rows))
    splits = exchanges_of(config)
    agent = start_agent(config)
    agent.gradient_checkpointing = config.gradient_checkpointing
    if config.gradient_checkpointing:
        layers_of(agent.backbone.model)  # a model that has none is refused here
    # A policy that is the whole model cannot also be the frozen judge of fluency.
    judge = agent.backbone if agent.settings.rank else config.model
    models = Models(
        identifier=config.identifier,
        language_model=judge,
        batch_size=config.reward_batch_size or None,
    )
    reward = build_rewards(config.rewards, models)
    if config.warm_steps:
        warm_up(config, agent, splits, accelerator)
    figures: dict[str, Any] = {"backbone": agent.backbone.name}
    figures["rows"] = {name: len(rows) for name, rows in splits.items()}
    if config.steps:
        figures |= reinforce("partner", config, agent, reward, splits, accelerator)
    accelerator.end_training()
    if accelerator.is_main_process:
        folder = Path(config.output) / "policy"
        save_policy(config, agent, folder)
        write_card(folder, config, figures, card(config, figures))
        tell_ending("partner", config.output)
    return figures


def check(config: Config) -> None:
    """Say what cannot work before anything is loaded; the loop checks its own sizes."""
    check_bounds(config)
    check_kl(config)
    model_options(config, whole_model=not config.from_policy and not config.rank)
    check_start(config)


def check_start(config: Config) -> None:
    """Refuse a start that cannot be, and a model that would be ignored without a word."""
    from policies.editing.settings import read_settings
    from policies.named import policy_folder

    if not config.from_policy:
        if not config.warm_steps:
            raise UserError(
                "a new policy (from_policy '') needs a warm start: set warm_steps, say 600."
            )
        return
    backbone, settings = read_settings(policy_folder(config.from_policy))
    # A policy that is a whole model has `model` beside it, as the frozen judge of fluency.
    if settings.rank and config.model not in (Config.model, backbone):
        raise UserError(
            f"model {config.model} would be ignored: {config.from_policy} brings its own. For a "
            f"new policy on {config.model}, set from_policy '' and warm_steps, say 600."
        )


def shares(config: Config, num_processes: int) -> str:
    """What each process works on, for the log. Sizes that cannot be shared evenly are refused."""
    parts = []
    if config.warm_steps:
        rows = share_of("warm_batch_size", config.warm_batch_size, num_processes)
        parts.append(f"{counted(rows, 'example')} a step in the warm start")
    if config.steps:
        rows = share_of("batch_size", config.batch_size, num_processes)
        rewrites = rows * config.num_samples
        parts.append(
            f"{counted(rows, 'exchange')} a step with {counted(rewrites, 'rewrite')} in "
            "reinforcement learning"
        )
    return f"each gets {' and '.join(parts) or 'nothing to train'}"


def exchanges_of(config: Config) -> dict[Split, list[Exchange]]:
    """The splits of the data. Levels and rationales are needed for the warm start alone."""
    from policies.editing.written_edits import has_written_edits
    from recipes.shared.sources import load_splits

    splits = load_splits(
        config.data, seed=config.seed, keep_crisis=config.keep_crisis, columns=config.columns
    )
    learnable = any(e.labels or has_written_edits(e) for e in splits["train"])
    if config.warm_steps and not learnable:
        raise UserError(
            f"{config.data}: the warm start needs labelled exchanges, or replies with written "
            "edits such as sample:rewrites. `rewriting score` gives any file its levels and "
            "rationales."
        )
    return splits


def start_agent(config: Config) -> EditAgent:
    """The policy to train: from a folder, or a new one on a model by name."""
    import torch

    from policies.editing.agent import EditAgent
    from policies.editing.settings import EditSettings
    from policies.named import policy_folder
    from rewriting.runtime.language_models.backbone import Backbone

    changes: dict[str, Any] = {
        "span_length": config.span_length,
        "max_edits": config.max_edits,
        "max_prompt_tokens": config.max_prompt_tokens,
        "max_new_tokens": config.max_new_tokens,
        "temperature": 1.0,
        "top_p": 1.0,
    }
    if config.from_policy:
        folder, options = policy_folder(config.from_policy), model_options(config)
        return EditAgent.load(folder, trainable=True, options=options, **changes)
    lora_layers = tuple(name.strip() for name in config.lora_layers.split(",") if name.strip())
    settings = EditSettings(
        rank=config.rank, alpha=config.alpha, lora_layers=lora_layers, **changes
    )
    # bfloat16 has too few digits for the small steps of a model that is trained whole.
    dtype = None if config.rank else torch.float32
    backbone = Backbone.load(config.model, dtype=dtype, options=model_options(config))
    return EditAgent(backbone, settings, seed=config.seed)
