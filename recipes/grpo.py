"""Train a causal chat model to rewrite whole replies, with TRL's GRPO or RLOO and our rewards.

The model is asked as the `prompted` baseline asks it; LoRA matrices learn what pays. TRL does the
training: its vLLM, DeepSpeed and FSDP support, by `accelerate launch`, is there as TRL offers it.

    accelerate launch train.py grpo --data sample --steps 20
    accelerate launch train.py grpo --model HuggingFaceTB/SmolLM2-1.7B-Instruct --use_vllm true
    python train.py grpo --algorithm rloo --rewards '{empathy_change: 1, mine.py:shorter: 0.1}'

The rewriter is written to OUTPUT/policy: `rewriting rewrite --policy OUTPUT/policy` uses it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes import sharding
from recipes.cards import command, write_card
from recipes.grpo_trainer import (
    last_checkpoint,
    make_arguments,
    make_trainer,
    save_adapter,
)
from recipes.shared import settings_of
from rewriting.errors import UserError
from rewriting.exchange import Exchange

if TYPE_CHECKING:
    from rewards.reward_sum import RewardSum

logger = logging.getLogger(__name__)
ALGORITHMS = ("grpo", "rloo")
COUNTS = "rank alpha steps batch_size max_prompt_tokens max_new_tokens save_every"
SETTINGS = "settings.json"
NO_DIFFERENCE = "output steps use_vllm gradient_checkpointing save_every report_to"
"""Settings that a run may go on with when they have changed."""
REWARDS = (
    "{empathy_change: 1.0, contrast: 1.0, fluency: {weight: 0.3, log: true}, repetition: 1.0, "
    "kindness: 1.0, edit_size: 0}"
)


@dataclass
class Config:
    """Settings of `train.py grpo`. The defaults fit two CPU cores."""

    output: str = field(
        default="runs/grpo",
        metadata={"help": "Folder for policy, TRL's checkpoints, log. Same folder: go on."},
    )
    data: str = field(
        default="sample", metadata={"help": "Exchanges to rewrite, sources separated by commas."}
    )
    model: str = field(
        default="smollm2-135m",
        metadata={"help": "Causal chat model: a short name, folder or hub id."},
    )
    algorithm: str = field(default="grpo", metadata={"help": "grpo or rloo, of TRL."})
    identifier: str = field(
        default="in-context", metadata={"help": "Who measures empathy: a name, or a folder."}
    )
    rewards: str = field(
        default=REWARDS,
        metadata={"help": "Name → weight, as YAML. Weight 0: logged only. path.py:function too."},
    )
    rank: int = field(default=16, metadata={"help": "Of the LoRA matrices."})
    alpha: int = field(default=32, metadata={"help": "LoRA's scale is alpha / rank."})
    targets: str = field(
        default="all-linear", metadata={"help": "Layers with LoRA matrices, by commas."}
    )
    steps: int = field(default=20, metadata={"help": "Optimizer steps."})
    batch_size: int = field(default=4, metadata={"help": "Exchanges of a step and process."})
    num_samples: int = field(default=4, metadata={"help": "Rewrites of each exchange."})
    learning_rate: float = field(default=1e-4, metadata={"help": "At its peak."})
    kl_weight: float = field(
        default=0.02, metadata={"help": "TRL's beta: the price of leaving the start; 0: none."}
    )
    max_prompt_tokens: int = field(default=384, metadata={"help": "Longer posts are cut."})
    max_new_tokens: int = field(default=64, metadata={"help": "Of a rewrite."})
    max_rows: int = field(default=0, metadata={"help": "Train on at most so many rows; 0: all."})
    keep_crisis: bool = field(
        default=False, metadata={"help": "Train on posts that the safety gate calls a crisis too."}
    )
    use_vllm: bool = field(default=False, metadata={"help": "Sample with vLLM, as TRL does (GPU)."})
    gradient_checkpointing: bool = field(default=False, metadata={"help": "Less memory, slower."})
    save_every: int = field(default=10, metadata={"help": "Steps between two checkpoints."})
    report_to: str = field(default="none", metadata={"help": "Trackers: tensorboard, wandb, …"})
    seed: int = field(default=0, metadata={"help": "Of data order and sampling."})


def run(config: Config) -> dict[str, Any]:
    """Train with TRL, write the rewriter and its card; the figures."""
    from policies.chat.rewrite_prompt import RewritePrompt, end_tokens
    from policies.chat.rewriter import RewriterSettings, write_rewriter
    from recipes.sources import drawn, load_splits
    from rewards.named import Models, build_rewards
    from rewriting.runtime.files import disk_errors, write_json

    check(config)
    output = Path(config.output)
    settings = settings_of(config, NO_DIFFERENCE)
    same_run(output, settings)
    folder = output / "policy"
    finished = earlier_results(folder)
    if finished is not None and finished["settings"].get("steps", 0) >= config.steps:
        logger.info("%s is finished: remove it, or name another output, to train anew", output)
        return dict(finished["figures"])
    refuse_encoder_decoder(config.model)
    exchanges = drawn(
        load_splits(config.data, keep_crisis=config.keep_crisis)["train"],
        config.max_rows,
        config.seed,
    )
    sharding.begin()
    reward = build_rewards(config.rewards, Models(identifier=config.identifier))
    arguments = make_arguments(config)  # after the rewards, before the policy: see sharding.py
    model, tokenizer = sharding.load_policy(config.model)
    if not tokenizer.chat_template:
        raise UserError(f"{config.model} has no chat template, so it cannot be asked to rewrite.")
    # TRL ends a completion at any end token that the model declares: here, at a quotation mark too.
    model.generation_config.eos_token_id = end_tokens(tokenizer)
    rows = rows_for(exchanges, RewritePrompt(tokenizer, config.max_prompt_tokens))
    with disk_errors(output):
        trainer = make_trainer(config, arguments, model, tokenizer, rows, judged(reward, exchanges))
        sharding.sample_together(trainer, model)
        if trainer.accelerator.is_main_process:
            write_json(output / SETTINGS, settings)
        trainer.train(resume_from_checkpoint=last_checkpoint(output))
    history = trainer.state.log_history
    figures = {"rows": len(exchanges), "log": [row for row in history if "reward" in row]}
    with disk_errors(folder):
        save_adapter(trainer, folder, config.model)
    if trainer.accelerator.is_main_process:
        lengths = (config.max_new_tokens, config.max_prompt_tokens)
        write_rewriter(folder, RewriterSettings(config.model, *lengths))
        write_card(folder, config, figures, card(config, figures))
    return figures


def check(config: Config) -> None:
    """Say what cannot work before anything is loaded."""
    if config.algorithm not in ALGORITHMS:
        raise UserError(
            f"there is no algorithm {config.algorithm!r}; use {' or '.join(ALGORITHMS)}."
        )
    if config.num_samples < 2:
        raise UserError(f"{config.algorithm} compares the samples of an exchange: 2 or more.")
    for name in COUNTS.split():
        if getattr(config, name) < 1:
            raise UserError(f"{name} must be 1 or more, not {getattr(config, name)}.")
    for name in ("learning_rate", "kl_weight", "max_rows"):
        if not getattr(config, name) >= 0:
            raise UserError(f"{name} must be 0 or more, not {getattr(config, name)}.")


def same_run(output: Path, settings: dict[str, Any]) -> None:
    """TRL goes on from any checkpoint that it finds, whatever it was trained for: ask first."""
    from rewriting.runtime.training.checkpoints import check_settings

    results = earlier_results(output / "policy")
    before = read_object(output / SETTINGS)
    if before is None and results is not None:  # of a version that kept no settings
        before = {name: results["settings"].get(name) for name in settings}
    if before is not None:
        check_settings(output, before, settings)
    elif last_checkpoint(output) is not None:
        raise UserError(
            f"{output} holds checkpoints, and nothing says what they were trained for. "
            "Name another output folder."
        )


def earlier_results(folder: Path) -> dict[str, Any] | None:
    """Settings and figures of a policy that is there already."""
    found = read_object(folder / "results.json")
    if found is not None and not {"settings", "figures"} <= found.keys():
        raise UserError(f"{folder / 'results.json'} is not of a rewriter. Name another output.")
    return found


def read_object(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file, None where there is no file."""
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is no JSON ({error}). Name another output folder.") from error
    if not isinstance(found, dict):
        raise UserError(f"{path} holds no settings. Name another output folder.")
    return found


def refuse_encoder_decoder(name: str) -> None:
    """TRL would fail at its first step, with a confusing error."""
    from transformers import AutoConfig

    from rewriting.runtime.models import resolve

    try:
        both = AutoConfig.from_pretrained(resolve(name)).is_encoder_decoder
    except (OSError, ValueError):  # loading it will say what is wrong, in one line
        return
    if both:
        raise UserError(
            f"{name} is an encoder-decoder, which TRL's GRPO and RLOO cannot train. "
            "Name a causal chat model, or train it with `train.py emprl`."
        )


def rows_for(exchanges: Sequence[Exchange], prompt: Any) -> list[dict[str, Any]]:
    """The rows of TRL's data set: the request, and which exchange it is of."""
    start = prompt.tokenizer.bos_token
    adds_start = bool(start) and prompt.tokenizer("")["input_ids"][:1] == prompt.tokens(start)
    texts = [prompt.text(one) for one in exchanges]
    if adds_start:  # the chat template wrote one, and TRL's tokenizing would add another
        texts = [text.removeprefix(start) for text in texts]
    return [{"prompt": text, "row": row} for row, text in enumerate(texts)]


def judged(reward: RewardSum, exchanges: Sequence[Exchange]) -> Any:
    """The reward of what the rewriter would hand out: the cleaned reply, or else the original.

    It is called with every column of the exchanges, as they are: TRL's tables would want one type
    in a column, and take some names for its own.
    """
    from policies.chat.rewrite_prompt import clean_reply
    from policies.training.rollouts import column_names

    names = column_names(exchanges)

    def reward_sum(completions: Sequence[str], row: Sequence[int], **columns: Any) -> Any:
        known = [exchanges[number].row() for number in row]
        pairs = zip(completions, known, strict=True)
        replies = [clean_reply(text) or one["response_post"] for text, one in pairs]
        data = {name: [one.get(name) for one in known] for name in names}
        return reward(**{**columns, **data, "completions": replies})

    return reward_sum


def card(config: Config, figures: dict[str, Any]) -> str:
    log = figures["log"]
    quarter = max(1, len(log) // 4)
    first, last = log[:quarter], log[-quarter:]
    means = [sum(row["reward"] for row in part) / max(1, len(part)) for part in (first, last)]
    return CARD.format(
        model=config.model,
        algorithm=config.algorithm.upper(),
        data=config.data,
        rows=figures["rows"],
        steps=config.steps,
        batch=config.batch_size,
        samples=config.num_samples,
        rewards=config.rewards,
        first=means[0],
        last=means[1],
        command=command("grpo", config),
    )


CARD = """# A rewriter of whole replies

`{model}` with LoRA matrices, trained by TRL's {algorithm} to rewrite a peer's reply.

- Data: {data}, the train part of it ({rows} exchanges), split by seeker.
- {steps} steps, {batch} exchanges a step and process, {samples} rewrites of each.
- Rewards: `{rewards}`
- Mean reward over the first quarter of the steps {first:.3f}, over the last quarter {last:.3f}.
- Command: `{command}`

## Limits
It writes the reply anew, and may drop or invent what its writer said. What it writes has to be read
by a person before anybody in distress sees it. Not validated for clinical use.
"""
