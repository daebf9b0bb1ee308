"""Train EmpRL's generator: respond as empathically as a person would, by PPO on levels of empathy.

Two stages (arXiv 2408.02976). `sft` learns from human responses; the language model stays frozen,
a prefix is learnt. `ppo` goes on from there: a response is rewarded for having the levels of
empathy that the human one has, and pays for leaving the first stage.

    python train.py emprl                                   # a quick run on the bundled sample
    accelerate launch train.py emprl --config configs/emprl.yaml --data data/empathetic_dialogues
    python train.py emprl --stage ppo --from_policy emprl-sft --kl_weight 0.05

The policy is written to OUTPUT/policy: `rewriting rewrite --policy OUTPUT/policy` uses it,
`evaluate.py responses --systems emprl-sft,OUTPUT/policy` measures it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared import (
    check_kl,
    check_least,
    model_field,
    model_options,
    settings_of,
    share_of,
    start_accelerator,
)
from rewriting.errors import UserError

if TYPE_CHECKING:
    from policies.generating.generator import Generator

logger = logging.getLogger(__name__)
STAGES = ("both", "sft", "ppo")
SAMPLED_AT_ONCE = 96  # responses; the output layer is read once for all of them
COUNTS = "sft_steps sft_batch_size sft_micro_batch_size balance"
"""Fields that are 1 or more; policies/training/ppo/loop.py checks those of the second stage."""
AMOUNTS = (
    "max_rows sft_learning_rate sft_average sft_dev_rows learning_rate value_rate_factor clip "
    "value_clip value_weight gamma lam kl_weight kl_target kl_horizon target_kl end_penalty "
    "dev_rows reward_batch_size"
)
"""Fields that are 0 or more."""
NO_DIFFERENCE = (
    "output report_to targets temperature top_p half sft_micro_batch_size micro_batch_size "
    "reward_batch_size save_every show_every"
)
"""Fields that change weights and log by rounding at the most: a run may go on with others."""


@dataclass
class Config:
    """Settings of `train.py emprl`. The defaults are a quick run on the bundled sample."""

    output: str = field(
        default="runs/emprl",
        metadata={"help": "Folder for policy, checkpoints, log, curves. Same folder: go on."},
    )
    stage: str = field(
        default="both", metadata={"help": "sft, ppo (from `from_policy`), or both, one after one."}
    )
    data: str = field(
        default="sample",
        metadata={"help": "Conversations: sources by commas; of a folder its train file, if any."},
    )
    max_rows: int = field(default=0, metadata={"help": "At most so many, drawn; 0: all."})
    keep_crisis: bool = field(
        default=False, metadata={"help": "Train on posts that the safety gate calls a crisis too."}
    )
    from_policy: str = field(
        default="emprl-sft",
        metadata={"help": "Where stage ppo starts: emprl-sft (shipped), or a folder."},
    )
    model: str = field(
        default="flan-t5-small",
        metadata={"help": "Encoder-decoder or causal model: a short name, folder or hub id."},
    )
    attention: str = model_field("attention")
    load_in_4bit: bool = model_field("load_in_4bit")
    compile: bool = model_field("compile")
    identifier: str = field(
        default="epitome",
        metadata={"help": "Who measures levels: epitome, a folder, or ensemble:NAME,NAME."},
    )
    targets: str = field(
        default="",
        metadata={"help": "File that keeps target levels, for several runs; '': in OUTPUT."},
    )
    expected_targets: bool = field(
        default=False,
        metadata={"help": "Reward the levels that people show in such conversations, not one's."},
    )
    balance: int = field(
        default=1,
        metadata={
            "help": "Label so many times the exchanges that the steps use, and draw from them with "
            "rarer levels more often; 1: as they come."
        },
    )
    rewards: str = field(
        default="{level_alignment: 1.0}",
        metadata={"help": "Name → weight, as YAML. Weight 0: logged only. path.py:function too."},
    )
    reward_batch_size: int = field(
        default=0,
        metadata={"help": "Texts that a reward model reads at once; 0: 8 on a CPU, 64 on a GPU."},
    )
    adapter: str = field(default="prefix", metadata={"help": "What is trained: prefix or lora."})
    num_virtual_tokens: int = field(default=20, metadata={"help": "Length of the prefix."})
    rank: int = field(default=16, metadata={"help": "Of LoRA."})
    max_context_tokens: int = field(
        default=128, metadata={"help": "A longer conversation loses its oldest turns."}
    )
    max_new_tokens: int = field(default=40, metadata={"help": "Of a response at the most."})
    temperature: float = field(
        default=0.7, metadata={"help": "Of the saved policy in use, whatever training samples at."}
    )
    top_p: float = field(default=0.9, metadata={"help": "In use too: what is unlikely is cut off."})

    sft_steps: int = field(default=60, metadata={"help": "Steps of the first stage."})
    sft_batch_size: int = field(default=16, metadata={"help": "Its exchanges of a step."})
    sft_micro_batch_size: int = field(default=16, metadata={"help": "Of them in memory at once."})
    sft_learning_rate: float = field(
        default=5e-2, metadata={"help": "At its peak. A prefix wants a hundred times LoRA's."}
    )
    sft_average: float = field(
        default=0.0, metadata={"help": "Decay of the average of the weights to keep; 0: none."}
    )
    sft_dev_rows: int = field(default=256, metadata={"help": "Exchanges of its dev loss; 0: all."})

    steps: int = field(default=16, metadata={"help": "Steps of PPO."})
    ppo_temperature: float = field(
        default=1.0,
        metadata={"help": "Of the policy that is trained: lower ones learn from fewer responses."},
    )
    batch_size: int = field(default=32, metadata={"help": "Responses of a step, all processes."})
    minibatch_size: int = field(default=16, metadata={"help": "Responses of an update."})
    micro_batch_size: int = field(default=16, metadata={"help": "Responses in memory at once."})
    inner_epochs: int = field(default=4, metadata={"help": "Uses of each response."})
    learning_rate: float = field(default=2e-2, metadata={"help": "At its peak."})
    value_rate_factor: float = field(
        default=0.1, metadata={"help": "The value head's rate, as a part of the policy's."}
    )
    max_grad_norm: float = field(default=1.0, metadata={"help": "Gradients are clipped to it."})
    clip: float = field(default=0.2, metadata={"help": "How far the ratio may go."})
    value_clip: float = field(default=0.2, metadata={"help": "How far a value may go; 0: free."})
    value_weight: float = field(default=0.1, metadata={"help": "Of the value loss."})
    gamma: float = field(default=1.0, metadata={"help": "Discount of later tokens."})
    lam: float = field(default=0.95, metadata={"help": "GAE's λ."})
    whiten_advantages: bool = field(default=True, metadata={"help": "Mean 0, deviation 1."})
    kl_weight: float = field(
        default=0.05, metadata={"help": "Price of the KL to the first stage, per nat; 0: none."}
    )
    kl_target: float = field(
        default=0.0,
        metadata={"help": "KL of a response to steer to, adapting the price; 0: fixed."},
    )
    kl_horizon: float = field(
        default=0.0,
        metadata={
            "help": "With kl_target: how many responses a full change of the price takes. A KL "
            "that stays a fifth off its target doubles or halves the price in 3.5 horizons. 0: in "
            "proportion to the run, so that this takes a tenth of it."
        },
    )
    target_kl: float = field(
        default=0.0,
        metadata={"help": "End a step's updates at 1.5 times this KL per token; 0: never."},
    )
    end_penalty: float = field(
        default=0.0, metadata={"help": "Subtracted from the reward where a response was cut off."}
    )
    dev_rows: int = field(default=64, metadata={"help": "Exchanges of a dev measurement; 0: none."})
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
    """Build or load the generator, supervise it, reinforce it, save it; the figures."""
    from recipes.emprl_ppo import build_reward, check_rows, check_sizes, reinforce
    from recipes.emprl_sft import conversations, shown, supervise

    check(config)
    accelerator = start_accelerator("emprl", config, plain(config))
    count = accelerator.num_processes
    logger.info("%d process(es) on %s: %s", count, accelerator.device, shares(config, count))
    reward = None
    if config.stage != "sft":  # a mistake in the second stage is said before hours in the first
        check_sizes(config, accelerator)
        reward = build_reward(config)
    splits = conversations(
        config.data, max_rows=config.max_rows, seed=config.seed, keep_crisis=config.keep_crisis
    )
    logger.info("train: %s", shown(splits["train"]))
    if reward is not None:
        check_rows(config, splits)
    generator = start_generator(config)
    figures: dict[str, Any] = {}
    if config.stage != "ppo":
        figures["sft"] = supervise(config, generator, splits, accelerator)
    if reward is not None:
        figures["ppo"] = reinforce(config, generator, reward, splits, accelerator)
    accelerator.end_training()
    return figures


def check(config: Config) -> None:
    """Say what cannot work before anything is loaded."""
    from policies.generating.settings import GeneratorSettings
    from recipes.targets import read

    if config.stage not in STAGES:
        raise UserError(f"stage is {', '.join(STAGES)}, not {config.stage!r}.")
    check_least(config, 1, COUNTS)
    check_least(config, 0, AMOUNTS)
    for name in ("gamma", "lam", "sft_average"):
        if getattr(config, name) > 1:
            raise UserError(f"{name} must be from 0 to 1, not {getattr(config, name)}.")
    check_kl(config)
    model_options(config)
    if config.max_grad_norm <= 0:
        raise UserError(f"max_grad_norm must be above 0, not {config.max_grad_norm}.")
    # What the policy will be used with; it would fail when it is saved, after training.
    GeneratorSettings(config.adapter, temperature=config.temperature, top_p=config.top_p)
    if config.adapter == "none":
        raise UserError("adapter none leaves nothing to train; use prefix or lora.")
    if config.targets:
        read(Path(config.targets).expanduser())


def shares(config: Config, num_processes: int) -> str:
    """What each process works on, for the log. Sizes that cannot be shared are refused."""
    parts = []
    if config.stage != "ppo":
        rows = share_of("sft_batch_size", config.sft_batch_size, num_processes)
        parts.append(f"{rows} exchange(s) a step in the supervised stage")
    if config.stage != "sft":
        rows = share_of("batch_size", config.batch_size, num_processes)
        if 0 < config.minibatch_size < num_processes:
            raise UserError(
                f"minibatch_size {config.minibatch_size} leaves some of {num_processes} processes "
                "without a response in an update. Make it as many, better several times as many."
            )
        updated = f"{config.minibatch_size / num_processes:g}"
        parts.append(f"{rows} response(s) a step in PPO, {updated} of them in each update")
    return f"each gets {' and '.join(parts)}"


def plain(config: Config) -> dict[str, Any]:
    """The settings that a run must share with the run it goes on from."""
    return settings_of(config, NO_DIFFERENCE)


def start_generator(config: Config) -> Generator:
    """A new generator for the first stage; for the second alone, the one of `from_policy`."""
    from policies.generating.generator import Generator
    from policies.named import policy_folder, policy_kind

    lengths: dict[str, Any] = {
        "max_context_tokens": config.max_context_tokens,
        "max_new_tokens": config.max_new_tokens,
        "temperature": config.ppo_temperature,
        "top_p": 1.0,
    }
    if config.stage == "ppo":
        folder = policy_folder(config.from_policy)
        if policy_kind(folder) != "generator":
            raise UserError(
                f"{config.from_policy} is no generator. Name emprl-sft, or a folder that "
                "`python train.py emprl --stage sft` wrote."
            )
        return Generator.load(
            folder,
            trainable=True,
            batch_size=SAMPLED_AT_ONCE,
            options=model_options(config),
            **lengths,
        )
    return Generator.create(
        config.model,
        options=model_options(config),
        seed=config.seed,
        batch_size=SAMPLED_AT_ONCE,
        adapter=config.adapter,
        num_virtual_tokens=config.num_virtual_tokens,
        rank=config.rank,
        **lengths,
    )
