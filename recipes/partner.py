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

from recipes.cards import command, write_card
from recipes.shared import (
    PARTNER_REWARDS,
    check_kl,
    check_least,
    kl_penalty,
    model_field,
    model_options,
    settings_of,
    share_of,
    start_accelerator,
)
from rewriting.errors import UserError
from rewriting.exchange import Exchange

if TYPE_CHECKING:
    from policies.editing.agent import EditAgent
    from rewriting.data import Split

logger = logging.getLogger(__name__)
COUNTS = (
    "warm_batch_size micro_batch_size span_length max_edits max_prompt_tokens max_new_tokens "
    "eval_every save_every show_every"
)
"""Fields that are 1 or more."""
AMOUNTS = (
    "rank warm_steps warm_learning_rate head_factor steps max_empathy clip learning_rate "
    "weight_decay kl_weight kl_target kl_horizon entropy_weight dev_rows reward_batch_size"
)
"""Fields that are 0 or more."""
NO_DIFFERENCE = (
    "output report_to temperature top_p half micro_batch_size reward_batch_size save_every "
    "show_every"
)
"""Fields that change weights and log by rounding at the most: a run may go on with others."""


@dataclass
class Config:
    """Settings of `train.py partner`. The defaults are the quick run on the bundled sample."""

    output: str = field(
        default="runs/partner",
        metadata={"help": "Folder for policy, checkpoints, log, curves. Same folder: go on."},
    )
    data: str = field(
        default="sample",
        metadata={"help": "Labelled exchanges, sources separated by commas."},
    )
    keep_crisis: bool = field(
        default=False, metadata={"help": "Train on what the safety gate calls a crisis too."}
    )
    from_policy: str = field(
        default="partner-start",
        metadata={
            "help": "Policy to start from: partner-start (shipped), a folder; '': a new one."
        },
    )
    model: str = field(
        default="smollm2-135m",
        metadata={"help": "Causal model of a new policy: a short name, folder or hub id."},
    )
    attention: str = model_field("attention")
    load_in_4bit: bool = model_field("load_in_4bit")
    compile: bool = model_field("compile")
    identifier: str = field(
        default="in-context",
        metadata={
            "help": "Who measures empathy: in-context, grounded, epitome, a folder, or "
            "ensemble:NAME,NAME."
        },
    )
    rewards: str = field(
        default=PARTNER_REWARDS,
        metadata={"help": "Name → weight, as YAML. Weight 0: logged only. path.py:function too."},
    )
    reward_batch_size: int = field(
        default=0,
        metadata={"help": "Texts that a reward model reads at once; 0: 8 on a CPU, 64 on a GPU."},
    )
    rank: int = field(default=16, metadata={"help": "Of LoRA in a new policy; 0: the whole model."})
    alpha: int = field(default=32, metadata={"help": "LoRA's scale is alpha / rank."})
    targets: str = field(
        default="", metadata={"help": "Layers with LoRA, by commas; '': those of the attention."}
    )
    span_length: int = field(default=4, metadata={"help": "Sentences that are seen at once."})
    max_edits: int = field(default=1, metadata={"help": "Edits of a span at the most."})
    max_prompt_tokens: int = field(default=256, metadata={"help": "Longer posts are cut."})
    max_new_tokens: int = field(default=32, metadata={"help": "Of a new sentence at the most."})

    temperature: float = field(
        default=0.7, metadata={"help": "Of the saved policy in use; training samples at 1."}
    )
    top_p: float = field(default=0.9, metadata={"help": "In use too: what is unlikely is cut off."})

    warm_steps: int = field(default=0, metadata={"help": "Steps of the warm start; 0: none."})
    warm_batch_size: int = field(default=16, metadata={"help": "Its rows of a step."})
    warm_learning_rate: float = field(default=5e-4, metadata={"help": "Its rate at the peak."})
    head_factor: float = field(
        default=4.0, metadata={"help": "The position head learns so many times faster there."}
    )

    steps: int = field(default=16, metadata={"help": "Steps of reinforcement learning; 0: none."})
    batch_size: int = field(default=4, metadata={"help": "Exchanges of a step, all processes."})
    num_samples: int = field(default=4, metadata={"help": "Rewrites of each exchange."})
    max_empathy: int = field(
        default=6, metadata={"help": "Train on responses with at most so much; unlabelled: 0."}
    )
    estimator: str = field(
        default="leave_one_out",
        metadata={"help": "Advantages: leave_one_out, moving_average (the paper's) or ppo."},
    )
    inner_epochs: int = field(default=1, metadata={"help": "Of ppo: uses of each sample."})
    clip: float = field(default=0.2, metadata={"help": "Of ppo: how far the ratio may go."})
    normalise: bool = field(default=False, metadata={"help": "Divide advantages by their size."})
    learning_rate: float = field(default=3e-4, metadata={"help": "At its peak."})
    weight_decay: float = field(default=0.0, metadata={"help": "AdamW's decay of the weights."})
    max_grad_norm: float = field(default=1.0, metadata={"help": "Gradients are clipped to it."})
    kl_weight: float = field(
        default=0.05, metadata={"help": "Price of the KL to the start, per nat; 0: none."}
    )
    kl_target: float = field(
        default=0.0, metadata={"help": "KL of a rewrite to steer to, adapting the price; 0: fixed."}
    )
    kl_horizon: float = field(
        default=0.0,
        metadata={
            "help": "With kl_target: how many rewrites a full change of the price takes. A KL that "
            "stays a fifth off its target doubles or halves the price in 3.5 horizons. 0: in "
            "proportion to the run, so that this takes a tenth of it."
        },
    )
    entropy_weight: float = field(
        default=0.05, metadata={"help": "Bonus for undecided positions, per nat."}
    )
    micro_batch_size: int = field(default=8, metadata={"help": "Rows in memory at once."})
    dev_rows: int = field(default=16, metadata={"help": "Exchanges of a dev measurement; 0: none."})
    eval_every: int = field(default=8, metadata={"help": "Steps between two of them."})
    keep_best: bool = field(
        default=False, metadata={"help": "Keep the weights with the best dev reward, not the last."}
    )
    save_every: int = field(default=10, metadata={"help": "Steps between two checkpoints."})
    show_every: int = field(default=8, metadata={"help": "Steps between two looks at samples."})
    report_to: str = field(
        default="", metadata={"help": "Trackers, by commas: tensorboard, wandb, trackio; '': none."}
    )
    half: bool = field(default=True, metadata={"help": "Store the policy in float16."})
    seed: int = field(default=0, metadata={"help": "Same seed, same policy."})


def run(config: Config) -> dict[str, Any]:
    """Build or load the policy, warm it up, reinforce it, save it; the figures."""
    from policies.training.reinforce.loop import train
    from recipes.partner_start import save, warm_up
    from rewards.named import Models, build_rewards

    check(config)
    accelerator = start_accelerator("partner", config, plain(config))
    count = accelerator.num_processes
    logger.info("%d process(es) on %s: %s", count, accelerator.device, shares(config, count))
    splits = exchanges_of(config)
    agent = start_agent(config)
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
    output, settings = Path(config.output), plain(config)
    figures: dict[str, Any] = {"backbone": agent.backbone.name}
    figures["rows"] = {name: len(rows) for name, rows in splits.items()}
    if config.steps:
        agent.freeze_reference()
        result = train(
            agent,
            reward,
            [e for e in splits["train"] if (e.empathy or 0) <= config.max_empathy],
            output=output,
            accelerator=accelerator,
            steps=config.steps,
            batch_size=config.batch_size,
            num_samples=config.num_samples,
            estimator=config.estimator,
            inner_epochs=config.inner_epochs,
            clip=config.clip,
            normalise=config.normalise,
            kl=kl_penalty(config),
            entropy_weight=config.entropy_weight,
            span_length=config.span_length,
            max_edits=config.max_edits,
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
            max_grad_norm=config.max_grad_norm,
            micro_batch_size=config.micro_batch_size,
            dev_exchanges=dev_exchanges(config, splits),
            eval_every=config.eval_every,
            keep_best=config.keep_best,
            save_every=config.save_every,
            show_every=config.show_every,
            seed=config.seed,
            settings=settings,
            title="partner",
        )
        kept = [row for row in result.rows if row["step"] == result.step][-1]
        figures |= {"step": result.step, "first": result.rows[0], "last": kept}
    accelerator.end_training()
    if accelerator.is_main_process:
        folder = output / "policy"
        save(config, agent, folder)
        write_card(folder, config, figures, card(config, figures))
    return figures


def check(config: Config) -> None:
    """Say what cannot work before anything is loaded; the loop checks its own sizes."""
    check_least(config, 1, COUNTS)
    check_least(config, 0, AMOUNTS)
    check_kl(config)
    model_options(config, whole_model=not config.from_policy and not config.rank)
    if config.max_grad_norm <= 0:
        raise UserError(f"max_grad_norm must be above 0, not {config.max_grad_norm}.")
    # What the policy will be used with: it would fail when it is saved, after training.
    if config.temperature <= 0 or not 0 < config.top_p <= 1:
        raise UserError("temperature must be above 0, top_p above 0 and at most 1.")


def shares(config: Config, num_processes: int) -> str:
    """What each process works on, for the log. Sizes that cannot be shared evenly are refused."""
    parts = []
    if config.warm_steps:
        rows = share_of("warm_batch_size", config.warm_batch_size, num_processes)
        parts.append(f"{rows} row(s) a step in the warm start")
    if config.steps:
        rows = share_of("batch_size", config.batch_size, num_processes)
        rewrites = rows * config.num_samples
        parts.append(
            f"{rows} exchange(s) a step with {rewrites} rewrites in reinforcement learning"
        )
    return f"each gets {' and '.join(parts) or 'nothing to train'}"


def plain(config: Config) -> dict[str, Any]:
    """The settings that a run must share with the run it goes on from."""
    return settings_of(config, NO_DIFFERENCE)


def exchanges_of(config: Config) -> dict[Split, list[Exchange]]:
    """The splits of the data. Levels and rationales are needed for the warm start alone."""
    from recipes.sources import load_splits

    splits = load_splits(config.data, seed=config.seed, keep_crisis=config.keep_crisis)
    if config.warm_steps and not any(exchange.labels for exchange in splits["train"]):
        raise UserError(
            f"{config.data}: the warm start needs labelled exchanges. "
            "`rewriting score` gives any file its levels and rationales."
        )
    return splits


def start_agent(config: Config) -> EditAgent:
    """The policy to train: from a folder, or a new one on a model by name."""
    import torch

    from policies.editing.agent import EditAgent
    from policies.editing.settings import EditSettings
    from policies.named import policy_folder
    from rewriting.runtime.backbone import Backbone

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
    if not config.warm_steps:
        raise UserError(
            "a new policy (from_policy '') needs a warm start: set warm_steps, say 600."
        )
    targets = tuple(name.strip() for name in config.targets.split(",") if name.strip())
    settings = EditSettings(rank=config.rank, alpha=config.alpha, targets=targets, **changes)
    # bfloat16 has too few digits for the small steps of a model that is trained whole.
    dtype = None if config.rank else torch.float32
    backbone = Backbone.load(config.model, dtype=dtype, options=model_options(config))
    return EditAgent(backbone, settings, seed=config.seed)


def dev_exchanges(config: Config, splits: dict[Split, list[Exchange]]) -> list[Exchange]:
    from recipes.sources import drawn

    return drawn(splits["dev"], config.dev_rows, config.seed) if config.dev_rows else []


def card(config: Config, figures: dict[str, Any]) -> str:
    lines = ""
    if "last" in figures:
        names = [n for n in figures["first"] if n.startswith("dev/")]
        rows = [
            f"| {n.removeprefix('dev/')} | {figures['first'][n]:.3f} | {figures['last'][n]:.3f} |"
            for n in names
            if n in figures["last"]
        ]
        lines = "\n".join(["| on dev | before | after |", "|---|---:|---:|", *rows])
    starts = [config.from_policy] if config.from_policy else []
    starts += [f"{config.warm_steps} steps of warm start"] if config.warm_steps else []
    return CARD.format(
        model=figures["backbone"],
        data=config.data,
        train=figures["rows"]["train"],
        rewards=config.rewards,
        estimator=config.estimator,
        steps=config.steps,
        batch=config.batch_size,
        samples=config.num_samples,
        start=", then ".join(starts),
        command=command("partner", config),
        results=lines,
    )


CARD = """# partner: an agent that rewrites a reply sentence by sentence

PARTNER (arXiv 2101.07714) on `{model}`: a position head says where to insert or replace a sentence,
or that nothing is to be changed; the language model says the sentence.

- Data: {data}, the train part of it ({train} exchanges), split by seeker.
- Start: {start}. Then {steps} steps of reinforcement learning ({estimator}), {batch} exchanges a
  step, {samples} rewrites of each.
- Rewards: `{rewards}`
- Command: `{command}`

## Results
{results}

## Limits
Trained on English peer support, with a reward that reads mostly the surface: it may be kind in the
wrong place. What it writes has to be read by a person before anybody in distress sees it. Not
validated for clinical use.
"""
