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

from policies.training.ppo.settings import Settings
from recipes.shared.accelerator import share_of, start_accelerator
from recipes.shared.ending import tell_ending
from recipes.shared.settings import Shared, check_kl, model_options
from rewriting.errors import UserError
from rewriting.runtime.models.options import ModelOptions
from rewriting.runtime.settings import borrowed, check_bounds, lasting, setting
from rewriting.words import counted

if TYPE_CHECKING:
    from policies.generating.generator import Generator

logger = logging.getLogger(__name__)
STAGES = ("both", "sft", "ppo")
SAMPLED_AT_ONCE = 96  # responses; the output layer is read once for all of them


@dataclass
class Config:
    """Settings of `train.py emprl`. The defaults are a quick run on the bundled sample."""

    output: str = setting(
        "runs/emprl",
        "Folder for the policy, checkpoints, log and curves. Give the same folder again to resume "
        "a run.",
        may_change=True,
    )
    stage: str = setting(
        "both",
        "Which stages run: sft (supervised), ppo (from from_policy), or both, one after the other.",
        choices=STAGES,
    )
    data: str = field(
        default="sample",
        metadata={
            "help": "Conversations to train on: files, folders, hub ids or sample, separated by "
            "commas. In a folder with a train file, only that one is read."
        },
    )
    max_rows: int = setting(
        0,
        "Maximum number of exchanges taken from each source and split, drawn at random; 0: all.",
        least=0,
    )
    keep_crisis: bool = field(
        default=False, metadata={"help": "Also train on posts that the safety gate calls a crisis."}
    )
    from_policy: str = field(
        default="emprl-sft",
        metadata={"help": "Policy that stage ppo starts from: emprl-sft (shipped) or a folder."},
    )
    model: str = field(
        default="flan-t5-small",
        metadata={
            "help": "Encoder-decoder or causal language model of a new policy: a short name, a "
            "folder or a hub id."
        },
    )
    attention: str = borrowed(ModelOptions, "attention")
    load_in_4bit: bool = borrowed(ModelOptions, "load_in_4bit")
    compile: bool = borrowed(ModelOptions, "compile")
    identifier: str = field(
        default="epitome",
        metadata={
            "help": "Identifier that measures levels of empathy: epitome, a folder, or "
            "ensemble:NAME,NAME."
        },
    )
    target_levels_file: str = setting(
        "",
        "File for the target levels (those of the human responses), which several runs may share; "
        "'': one in OUTPUT.",
        may_change=True,
    )
    expected_targets: bool = field(
        default=False,
        metadata={
            "help": "Reward the levels that people are expected to show in such a conversation, "
            "not those of the one human response."
        },
    )
    balance: int = setting(
        1,
        "Label this many times the exchanges that the steps use, and draw those with rarer levels "
        "more often; 1: use them as they come.",
        least=1,
    )
    rewards: str = field(
        default="{level_alignment: 1.0}",
        metadata={
            "help": "Reward terms and their weights, as YAML; weight 0 only logs a term. "
            "path.py:function names one of your own."
        },
    )
    reward_batch_size: int = borrowed(Shared, "reward_batch_size")
    adapter: str = field(
        default="prefix", metadata={"help": "Adapter that is trained: prefix or lora."}
    )
    num_virtual_tokens: int = field(
        default=20,
        metadata={"help": "With adapter prefix: number of virtual tokens in the prefix."},
    )
    rank: int = field(
        default=16, metadata={"help": "With adapter lora: rank of the LoRA matrices."}
    )
    max_context_tokens: int = field(
        default=128,
        metadata={
            "help": "Maximum length of a conversation, in tokens; longer ones lose their oldest "
            "turns."
        },
    )
    max_new_tokens: int = field(
        default=40,
        metadata={"help": "Maximum length of a response, in tokens, its end token included."},
    )
    temperature: float = borrowed(Shared, "temperature")
    top_p: float = borrowed(Shared, "top_p")

    sft_steps: int = setting(60, "Supervised stage: optimizer steps.", least=1)
    sft_batch_size: int = setting(
        16, "Supervised stage: exchanges per optimizer step, over all processes.", least=1
    )
    sft_micro_batch_size: int = setting(
        16,
        "Supervised stage: exchanges in memory at once, per process; it changes no result.",
        least=1,
        may_change=True,
    )
    sft_learning_rate: float = setting(
        5e-2,
        "Supervised stage: peak learning rate, after the linear warm-up. A prefix needs about a "
        "hundred times that of LoRA.",
        least=0,
    )
    sft_average: float = setting(
        0.0,
        "Supervised stage: decay of the moving average of the weights, which is measured and "
        "saved; 0: no average.",
        least=0,
        greatest=1,
    )
    sft_dev_rows: int = setting(
        256, "Supervised stage: maximum number of dev exchanges for the dev loss; 0: all.", least=0
    )

    steps: int = borrowed(Settings, "steps", 16)
    ppo_temperature: float = field(
        default=1.0,
        metadata={
            "help": "Sampling temperature of the policy while PPO trains it; at a lower one it "
            "learns from fewer different responses."
        },
    )
    batch_size: int = borrowed(
        Settings, "batch_size", 32, "Responses per step, over all processes."
    )
    minibatch_size: int = borrowed(Settings, "minibatch_size", 16)
    micro_batch_size: int = borrowed(
        Settings,
        "micro_batch_size",
        16,
        "Responses in memory at once, per process; it changes no result.",
    )
    inner_epochs: int = borrowed(Settings, "inner_epochs")
    learning_rate: float = borrowed(Settings, "learning_rate", 2e-2)
    value_rate_factor: float = setting(
        0.1, "Learning rate of the value head, as a multiple of the policy's.", least=0
    )
    max_grad_norm: float = borrowed(Settings, "max_grad_norm")
    clip: float = borrowed(Settings, "clip")
    value_clip: float = borrowed(Settings, "value_clip")
    value_weight: float = borrowed(Settings, "value_weight")
    gamma: float = borrowed(Settings, "gamma")
    lam: float = borrowed(Settings, "lam")
    whiten_advantages: bool = borrowed(Settings, "whiten_advantages")
    kl_weight: float = borrowed(Shared, "kl_weight")
    kl_target: float = borrowed(Shared, "kl_target")
    kl_horizon: float = borrowed(Shared, "kl_horizon")
    max_update_kl: float = borrowed(Settings, "max_update_kl")
    end_penalty: float = borrowed(Settings, "end_penalty")
    dev_rows: int = borrowed(Shared, "dev_rows")
    eval_every: int = borrowed(Settings, "eval_every", 8)
    keep_best: bool = borrowed(Settings, "keep_best")
    save_every: int = borrowed(Settings, "save_every", 10)
    show_every: int = borrowed(Settings, "show_every", 8)
    report_to: str = borrowed(Shared, "report_to")
    timeout_minutes: float = borrowed(Shared, "timeout_minutes")
    half: bool = borrowed(Shared, "half")
    seed: int = borrowed(Settings, "seed")


def run(config: Config) -> dict[str, Any]:
    """Build or load the generator, supervise it, reinforce it, save it; the figures."""
    from recipes.train.emprl.ppo import build_reward, check_rows, check_sizes, reinforce
    from recipes.train.emprl.sft import conversations, shown, supervise

    check(config)
    accelerator = start_accelerator("emprl", config, lasting(config))
    count = accelerator.num_processes
    logger.info(
        "%s on %s: %s", counted(count, "process"), accelerator.device, shares(config, count)
    )
    reward = None
    if config.stage != "sft":  # a mistake in the second stage is said before hours in the first
        check_sizes(config, accelerator)
        reward = build_reward(config)
    splits = conversations(
        config.data, max_rows=config.max_rows, seed=config.seed, keep_crisis=config.keep_crisis
    )
    logger.info("training data: %s", shown(splits["train"]))
    if reward is not None:
        check_rows(config, splits)
    generator = start_generator(config)
    figures: dict[str, Any] = {}
    if config.stage != "ppo":
        figures["sft"] = supervise(config, generator, splits, accelerator)
    if reward is not None:
        figures["ppo"] = reinforce(config, generator, reward, splits, accelerator)
    accelerator.end_training()
    if accelerator.is_main_process:
        tell_ending("emprl", config.output)
    return figures


def check(config: Config) -> None:
    """Say what cannot work before anything is loaded."""
    from policies.generating.settings import GeneratorSettings
    from recipes.train.emprl.targets import read

    check_bounds(config)
    check_kl(config)
    model_options(config)
    # What the policy will be used with; it would fail when it is saved, after training.
    GeneratorSettings(config.adapter, temperature=config.temperature, top_p=config.top_p)
    if config.adapter == "none":
        raise UserError("adapter none leaves nothing to train; use prefix or lora.")
    if config.target_levels_file:
        read(Path(config.target_levels_file).expanduser())
    if config.stage == "ppo":
        check_start(config)


def check_start(config: Config) -> None:
    """Refuse a start of the second stage that is no generator, and a model that it would ignore."""
    from policies.generating.settings import read_settings
    from policies.named import policy_folder, policy_kind

    folder = policy_folder(config.from_policy)
    if policy_kind(folder) != "generator":
        raise UserError(
            f"{config.from_policy} is no generator. Name emprl-sft, or a folder that "
            "`python train.py emprl --stage sft` wrote."
        )
    backbone, _ = read_settings(folder)
    if config.model not in (Config.model, backbone):
        raise UserError(
            f"model {config.model} would be ignored: stage ppo goes on with {config.from_policy}, "
            "which brings its own. For a new generator, set stage both."
        )


def shares(config: Config, num_processes: int) -> str:
    """What each process works on, for the log. Sizes that cannot be shared are refused."""
    parts = []
    if config.stage != "ppo":
        rows = share_of("sft_batch_size", config.sft_batch_size, num_processes)
        parts.append(f"{counted(rows, 'exchange')} a step in the supervised stage")
    if config.stage != "sft":
        rows = share_of("batch_size", config.batch_size, num_processes)
        if 0 < config.minibatch_size < num_processes:
            raise UserError(
                f"minibatch_size {config.minibatch_size} leaves some of {num_processes} processes "
                f"without a response in an update. Make it {num_processes} or more, better several "
                "times as many."
            )
        updated = f"{config.minibatch_size / num_processes:g}"
        parts.append(f"{counted(rows, 'response')} a step in PPO, {updated} of them in each update")
    return f"each gets {' and '.join(parts)}"


def start_generator(config: Config) -> Generator:
    """A new generator for the first stage; for the second alone, the one of `from_policy`."""
    from policies.generating.generator import Generator
    from policies.named import policy_folder

    lengths: dict[str, Any] = {
        "max_context_tokens": config.max_context_tokens,
        "max_new_tokens": config.max_new_tokens,
        "temperature": config.ppo_temperature,
        "top_p": 1.0,
    }
    if config.stage == "ppo":
        return Generator.load(
            policy_folder(config.from_policy),
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
