"""Train a causal chat model to rewrite or edit replies, with TRL's GRPO or RLOO and our rewards.

With `--actions rewrites` the model is asked as the `prompted` baseline asks it, for a whole reply;
with `--actions edits` for edits of the numbered sentences, in a small grammar. LoRA matrices learn
what pays. TRL does the training: its vLLM, DeepSpeed and FSDP support, by `accelerate launch`, is
there as TRL offers it, and so is every field of its configs, by `--trl`.

    accelerate launch train.py grpo --data sample --steps 20
    accelerate launch train.py grpo --actions edits --model Qwen/Qwen2.5-7B-Instruct --use_vllm true
    python train.py grpo --algorithm rloo --rewards '{empathy_change: 1, mine.py:shorter: 0.1}'
    python train.py grpo --trl '{loss_type: dapo, gradient_accumulation_steps: 4}'

The policy is written to OUTPUT/policy: `rewriting rewrite --policy OUTPUT/policy` uses it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recipes.shared.cards import command, write_card
from recipes.shared.ending import tell_ending
from recipes.shared.settings import columns_field
from recipes.train.grpo import sharding
from recipes.train.grpo.actions import ACTIONS, EDITS, load_actions
from recipes.train.grpo.requests import rows_for
from recipes.train.grpo.rewards import UNPARSABLE, Readings, reward_functions
from recipes.train.grpo.trainer import (
    exchanges_at_once,
    last_checkpoint,
    load_chat_model,
    make_arguments,
    make_trainer,
    save_adapter,
)
from recipes.train.grpo.trl_settings import read_trl
from recipes.train.grpo.warm_start import (
    WARM_STEPS,
    WarmSettings,
    examples_at_once,
    warm_figures,
    warm_up,
)
from rewriting.errors import UserError
from rewriting.runtime.files.json_files import read_json
from rewriting.runtime.settings import borrowed, check_bounds, lasting, setting

logger = logging.getLogger(__name__)
ALGORITHMS = ("grpo", "rloo")
SETTINGS = "settings.json"
REWARDS = (
    "{empathy_change: 1.0, contrast: 1.0, fluency: {weight: 0.3, log: true}, repetition: 1.0, "
    "kindness: 1.0, sense: 16.0, edit_size: 0}"
)


@dataclass
class Config:
    """Settings of `train.py grpo`. The defaults fit two CPU cores."""

    output: str = setting(
        "runs/grpo",
        "Folder for the policy, TRL's checkpoints and the log. Give the same folder again to "
        "resume a run.",
        may_change=True,
    )
    data: str = setting(
        "sample", "Exchanges to train on: files, folders, hub ids or sample, separated by commas."
    )
    model: str = borrowed(WarmSettings, "model")
    actions: str = setting(
        "rewrites",
        "rewrites: the model writes whole replies anew; edits: it answers with edits of the "
        "numbered sentences.",
        choices=ACTIONS,
    )
    columns: str = columns_field()
    algorithm: str = setting(
        "grpo", "Training algorithm, from TRL: grpo or rloo.", choices=ALGORITHMS
    )
    identifier: str = setting("in-context", "Identifier that measures empathy: a name or a folder.")
    rewards: str = setting(
        REWARDS,
        "Reward terms and their weights, as YAML; weight 0 only logs a term. path.py:function "
        "names one of your own.",
    )
    unparsable_penalty: float = setting(
        1.0,
        "With actions edits: penalty subtracted from the reward of an answer that cannot be read.",
        least=0,
    )
    rank: int = borrowed(WarmSettings, "rank")
    alpha: int = borrowed(WarmSettings, "alpha")
    lora_layers: str = borrowed(WarmSettings, "lora_layers")
    steps: int = setting(20, "Optimizer steps.", least=1, may_change=True)
    batch_size: int = setting(4, "Exchanges per optimizer step, over all processes.", least=1)
    num_samples: int = setting(
        4, "Number of answers sampled for each exchange and compared with each other.", least=2
    )
    learning_rate: float = setting(1e-4, "Peak learning rate.", least=0)
    kl_weight: float = setting(
        0.02,
        "Weight of the KL penalty that keeps the model near its start (TRL's beta); 0: no penalty.",
        least=0,
    )
    max_prompt_tokens: int = borrowed(WarmSettings, "max_prompt_tokens")
    max_new_tokens: int = borrowed(WarmSettings, "max_new_tokens")
    max_rows: int = setting(
        0, "Maximum number of exchanges to train on, drawn at random; 0: all.", least=0
    )
    keep_crisis: bool = borrowed(WarmSettings, "keep_crisis")
    warm_steps: int | None = borrowed(WarmSettings, "warm_steps", None)
    warm_data: str = borrowed(WarmSettings, "warm_data")
    warm_batch_size: int = borrowed(WarmSettings, "warm_batch_size")
    warm_learning_rate: float = borrowed(WarmSettings, "warm_learning_rate")
    use_vllm: bool = setting(
        False, "Sample with vLLM, through TRL; needs a GPU and the package vllm.", may_change=True
    )
    gradient_checkpointing: bool = setting(
        False,
        "Recompute activations in the backward pass instead of keeping them: less memory, more "
        "time, the same result.",
        may_change=True,
    )
    trl: str = setting(
        "{}", "Any other field of TRL's GRPOConfig or RLOOConfig, as YAML: '{loss_type: dapo}'."
    )
    save_every: int = setting(10, "Steps between two checkpoints.", least=1, may_change=True)
    report_to: str = setting(
        "none",
        "Experiment tracker that TRL logs to, such as tensorboard or wandb; none: no tracker.",
        may_change=True,
    )
    seed: int = borrowed(WarmSettings, "seed")


def run(config: Config) -> dict[str, Any]:
    """Train with TRL, write the policy and its card; the figures."""
    from policies.chat.rewriter import RewriterSettings, write_rewriter
    from recipes.shared.sources import drawn, load_splits
    from rewards.named import Models, build_rewards
    from rewriting.runtime.files.disk import disk_errors, write_json

    config = check(config)
    output = Path(config.output)
    settings = lasting(config)
    same_run(output, settings)
    folder = output / "policy"
    finished = earlier_results(folder)
    if finished is not None and finished["settings"].get("steps", 0) >= config.steps:
        logger.info(
            "%s holds a finished run: to train again, remove it or name another output", output
        )
        return dict(finished["figures"])
    refuse_encoder_decoder(config.model)
    splits = load_splits(config.data, keep_crisis=config.keep_crisis, columns=config.columns)
    exchanges = drawn(splits["train"], config.max_rows, config.seed)
    actions = load_actions(config.actions)
    sharding.begin()
    check_shares(config)
    reward = build_rewards(config.rewards, Models(identifier=config.identifier))
    functions = reward_functions(reward, Readings(exchanges, actions), config.unparsable_penalty)
    warm_start = warm_up(config)
    arguments = make_arguments(config, functions)  # after rewards, before policy (sharding.py)
    model, tokenizer = load_chat_model(config.model)
    # TRL ends a completion at any end token that the model declares.
    model.generation_config.eos_token_id = actions.end_tokens(model, tokenizer)
    rows = rows_for(exchanges, actions.prompt(tokenizer, config.max_prompt_tokens))
    with disk_errors(output):
        start = sharding.with_warm_start(model, warm_start, arguments)
        trainer = make_trainer(config, arguments, start, tokenizer, rows, functions)
        sharding.sample_together(trainer, model)
        if trainer.accelerator.is_main_process:
            write_json(output / SETTINGS, settings)
        trainer.train(resume_from_checkpoint=last_checkpoint(output))
    figures: dict[str, Any] = {"rows": len(exchanges), "log": reward_log(trainer)}
    figures |= warm_figures(warm_start)
    with disk_errors(folder):
        save_adapter(trainer, folder, config.model)
    if trainer.accelerator.is_main_process:
        lengths = (config.max_new_tokens, config.max_prompt_tokens)
        write_rewriter(folder, RewriterSettings(config.model, *lengths), actions.kind)
        write_card(folder, config, figures, card(config, figures))
        tell_ending("grpo", output, figures["log"])
    return figures


def reward_log(trainer: Any) -> list[dict[str, float]]:
    """TRL's log of the rewards, step by step. A term that applied to no row is NaN there."""
    rows = [row for row in trainer.state.log_history if "reward" in row]
    return [{name: value for name, value in row.items() if value == value} for row in rows]


def check(config: Config) -> Config:
    """Say what cannot work before anything is loaded; the config with all its defaults."""
    check_bounds(config)
    edits = config.actions == EDITS
    if config.warm_steps and not edits:
        raise UserError("warm_steps teach the grammar of edits: they need --actions edits.")
    warm_steps = config.warm_steps if config.warm_steps is not None else WARM_STEPS * edits
    given: Any = read_trl(config.trl, config.algorithm) or "{}"
    return replace(config, warm_steps=warm_steps, trl=given)


def check_shares(config: Config) -> None:
    """Refuse batches that the processes cannot share evenly, before a model is loaded."""
    exchanges_at_once(config)
    if config.warm_steps:
        examples_at_once(config)


def same_run(output: Path, settings: dict[str, Any]) -> None:
    """TRL goes on from any checkpoint that it finds, whatever it was trained for: ask first."""
    from rewriting.runtime.training.checkpoints import check_settings

    results = earlier_results(output / "policy")
    before = read_object(output / SETTINGS)
    if before is None and results is not None:  # of a version that kept no settings
        before = {name: results["settings"].get(name) for name in settings}
    if before is not None:
        defaults = lasting(check(Config()))  # of fields that came later
        check_settings(output, defaults | before, settings)
    elif last_checkpoint(output) is not None:
        raise UserError(
            f"{output} holds checkpoints, and nothing says what they were trained for. "
            "Name another output folder."
        )


def earlier_results(folder: Path) -> dict[str, Any] | None:
    """Settings and figures of a policy that is there already."""
    found = read_object(folder / "results.json")
    if found is not None and not {"settings", "figures"} <= found.keys():
        raise UserError(
            f"{folder / 'results.json'} does not describe a rewriter. Name another output."
        )
    return found


def read_object(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file, None where there is no file."""
    if not path.is_file():
        return None
    try:
        found = read_json(path)
    except ValueError as error:
        raise UserError(
            f"{path} is not valid JSON ({error}). Name another output folder."
        ) from error
    if not isinstance(found, dict):
        raise UserError(f"{path} holds no settings. Name another output folder.")
    return found


def refuse_encoder_decoder(name: str) -> None:
    """TRL would fail at its first step, with a confusing error."""
    from rewriting.runtime.models.named import load_config

    if getattr(load_config(name), "is_encoder_decoder", False):
        raise UserError(
            f"{name} is an encoder-decoder, which TRL's GRPO and RLOO cannot train. "
            "Name a causal chat model, or train it with `train.py emprl`."
        )


def card(config: Config, figures: dict[str, Any]) -> str:
    return CARD.format(
        title=TITLES[config.actions],
        model=config.model,
        algorithm=config.algorithm.upper(),
        data=config.data,
        rows=figures["rows"],
        steps=config.steps,
        batch=config.batch_size,
        samples=config.num_samples,
        rewards=config.rewards,
        first=quarters(figures["log"], "reward")[0],
        last=quarters(figures["log"], "reward")[1],
        edits=edits_of(config, figures),
        command=command("grpo", config),
        limits=LIMITS[config.actions],
    )


def quarters(log: list[dict[str, float]], name: str) -> list[float]:
    """The mean of a figure over the first quarter of the steps, and over the last."""
    quarter = max(1, len(log) // 4)
    parts = (log[:quarter], log[-quarter:])
    return [sum(row[name] for row in part) / max(1, len(part)) for part in parts]


def edits_of(config: Config, figures: dict[str, Any]) -> str:
    """What the card says of the warm start and of answers that cannot be read."""
    if config.actions != EDITS:
        return ""
    first, last = quarters(figures["log"], f"rewards/{UNPARSABLE}/mean")
    return (
        f"- Warm start: {config.warm_steps} supervised steps of {config.warm_batch_size} examples "
        f"of {config.warm_data}.\n"
        f"- Answers that could not be read: {100 * first:.0f} % in the first quarter of the steps, "
        f"{100 * last:.0f} % in the last; each cost {config.unparsable_penalty}.\n"
    )


TITLES = {"rewrites": "A rewriter of whole replies", "edits": "An editor of replies"}
LIMITS = {
    "rewrites": "It writes the reply anew, and may drop or invent what its writer said.",
    "edits": "It may replace what its writer said, and invent what nobody said.",
}
CARD = """# {title}

`{model}` with LoRA matrices, trained by TRL's {algorithm} to make a peer's reply kinder.

- Data: {data}, the train part of it ({rows} exchanges), split by seeker.
{edits}- {steps} steps, {batch} exchanges a step, {samples} samples of each.
- Rewards: `{rewards}`
- Mean reward over the first quarter of the steps {first:.3f}, over the last quarter {last:.3f}.
- Command: `{command}`

## Limits
{limits} What it writes has to be read by a person before anybody in distress sees it. Not validated
for clinical use.
"""
