"""TRL's trainer for `train.py grpo`: our fields in its words, its checkpoints, its adapter."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.accelerator import share_of
from recipes.train.grpo import sharding
from recipes.train.grpo.trl_settings import read_trl
from rewriting.errors import UserError
from rewriting.runtime.files.disk import write_json
from rewriting.runtime.processes import num_processes

if TYPE_CHECKING:
    from recipes.train.grpo.recipe import Config
    from rewards.term_functions import TermFunction

ADAPTER_FILES = ("adapter_model.safetensors", "adapter_config.json")


def make_arguments(config: Config, functions: Sequence[TermFunction]) -> Any:
    """What our fields mean in TRL's words, and what the user said in them."""
    import trl

    ours = dict(
        output_dir=config.output,
        max_steps=config.steps,
        per_device_train_batch_size=exchanges_at_once(config) * config.num_samples,
        num_generations=config.num_samples,
        max_completion_length=config.max_new_tokens,
        learning_rate=config.learning_rate,
        beta=config.kl_weight,
        temperature=1.0,
        reward_weights=[one.weight for one in functions],
        use_vllm=config.use_vllm,
        gradient_checkpointing=config.gradient_checkpointing,
        logging_steps=1,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=2,
        report_to=config.report_to,
        seed=config.seed,
        **device_arguments(),
    )
    with explained():
        kind = getattr(trl, f"{config.algorithm.upper()}Config")
        return kind(**{**ours, **read_trl(config.trl, config.algorithm)})


def exchanges_at_once(config: Config) -> int:
    """The exchanges of one backward pass of one process: its share of a step, which TRL's
    gradient accumulation cuts again."""
    own = share_of("batch_size", config.batch_size, num_processes())
    passes = read_trl(config.trl, config.algorithm).get("gradient_accumulation_steps") or 1
    if own % passes:
        raise UserError(
            f"batch_size {config.batch_size} gives each process {own} exchanges, which "
            f"gradient_accumulation_steps {passes} cannot cut evenly. Make batch_size a multiple "
            f"of {num_processes() * passes}."
        )
    return own // passes


def load_chat_model(name: str) -> tuple[Any, Any]:
    """The model to train and its tokenizer, which has to know how one talks to it."""
    model, tokenizer = sharding.load_policy(name)
    if not tokenizer.chat_template:
        raise UserError(f"{name} has no chat template, so it cannot be asked to rewrite.")
    return model, tokenizer


def device_arguments() -> dict[str, Any]:
    """TRL's arguments for the device: bfloat16 on a GPU, float32 on a CPU."""
    import torch

    gpu = torch.cuda.is_available()
    return {"bf16": gpu, "use_cpu": not gpu}


def make_trainer(
    config: Config,
    arguments: Any,
    model: Any,
    tokenizer: Any,
    rows: Any,
    functions: Sequence[TermFunction],
) -> Any:
    """TRL's trainer, with LoRA matrices on the model unless it has those of the warm start."""
    import trl
    from datasets import Dataset
    from peft import PeftModel

    no_telemetry()
    with explained():
        return getattr(trl, f"{config.algorithm.upper()}Trainer")(
            model=model,
            processing_class=tokenizer,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            reward_funcs=[one.function for one in functions],
            peft_config=None if isinstance(model, PeftModel) else lora(config),
        )


def lora(config: Config) -> Any:
    """The LoRA matrices that are trained."""
    from rewriting.runtime.language_models.lora import lora_config

    layers = [part.strip() for part in config.lora_layers.split(",") if part.strip()]
    chosen = config.lora_layers if config.lora_layers == "all-linear" else layers
    return lora_config(config.rank, chosen, alpha=config.alpha, task="CAUSAL_LM")


def no_telemetry() -> None:
    """Let TRL's trainers tell the hub nothing: that a run takes place is nobody's business here."""
    from huggingface_hub import constants

    constants.HF_HUB_DISABLE_TELEMETRY = True


@contextmanager
def explained() -> Iterator[None]:
    """What a user can mend, in one line: libraries, layers and trackers that are not there, values
    that TRL does not take. The rest is no mistake of theirs: a GPU without room, for one."""
    try:
        yield
    except (ImportError, ValueError, TypeError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "installed" not in str(error):
            raise
        raise UserError(" ".join(str(error).split())) from error


def last_checkpoint(output: Path) -> str | None:
    """Where TRL would go on. Its checkpoints are not ours: a kill while it saves can cost one."""
    from transformers.trainer_utils import get_last_checkpoint

    return get_last_checkpoint(str(output)) if output.is_dir() else None


def save_adapter(trainer: Any, folder: Path, model: str) -> None:
    """The LoRA matrices as an adapter folder; it names the model, not this machine's path of it.

    Called by all processes: where DeepSpeed or FSDP shard the model, the trainer puts it together.
    It writes more than is wanted (a tokenizer, pickled arguments), so it writes beside the folder.
    The name comes last, since PEFT would look for a short name on the hub while it saves.
    """
    peft = trainer.accelerator.unwrap_model(trainer.model)
    layers = adapted_layers(peft)
    beside = folder.with_name(f".{folder.name}.tmp")
    trainer.save_model(str(beside))
    if trainer.accelerator.is_main_process:
        weights, description = (beside / name for name in ADAPTER_FILES)
        settings = json.loads(description.read_text(encoding="utf-8"))
        settings |= {"base_model_name_or_path": model, "target_modules": layers}
        folder.mkdir(parents=True, exist_ok=True)
        weights.replace(folder / weights.name)
        write_json(folder / description.name, settings)
        shutil.rmtree(beside)


def adapted_layers(peft: Any) -> list[str]:
    """The names of the layers that have LoRA matrices: what "all-linear" came to."""
    names = (name for name, module in peft.named_modules() if hasattr(module, "lora_A"))
    return sorted({name.split(".")[-1] for name in names})
