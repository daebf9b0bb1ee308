"""TRL's trainer for `train.py grpo`: our fields in its words, its checkpoints, its adapter."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewriting.errors import UserError

if TYPE_CHECKING:
    from recipes.grpo import Config

ADAPTER_FILES = ("adapter_model.safetensors", "adapter_config.json")


def make_arguments(config: Config) -> Any:
    """What our fields mean in TRL's words."""
    import torch
    import trl

    gpu = torch.cuda.is_available()
    return getattr(trl, f"{config.algorithm.upper()}Config")(
        output_dir=config.output,
        max_steps=config.steps,
        per_device_train_batch_size=config.batch_size * config.num_samples,
        num_generations=config.num_samples,
        max_completion_length=config.max_new_tokens,
        learning_rate=config.learning_rate,
        beta=config.kl_weight,
        temperature=1.0,
        use_vllm=config.use_vllm,
        gradient_checkpointing=config.gradient_checkpointing,
        logging_steps=1,
        save_strategy="steps",
        save_steps=config.save_every,
        save_total_limit=2,
        report_to=config.report_to,
        seed=config.seed,
        bf16=gpu,
        use_cpu=not gpu,
    )


def make_trainer(
    config: Config, arguments: Any, model: Any, tokenizer: Any, rows: Any, reward: Any
) -> Any:
    """TRL's trainer, with LoRA matrices on the model."""
    import trl
    from datasets import Dataset
    from peft import LoraConfig

    targets: Any = [part.strip() for part in config.targets.split(",") if part.strip()]
    lora = LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        target_modules=config.targets if config.targets == "all-linear" else targets,
        task_type="CAUSAL_LM",
    )
    try:
        return getattr(trl, f"{config.algorithm.upper()}Trainer")(
            model=model,
            processing_class=tokenizer,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            reward_funcs=reward,
            peft_config=lora,
        )
    except (ImportError, ValueError, RuntimeError) as error:
        # Libraries that are missing, layers and trackers that are not there. The rest is no mistake
        # of the user's: a GPU without room, for one.
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
    """
    peft = trainer.accelerator.unwrap_model(trainer.model)
    peft.peft_config["default"].base_model_name_or_path = model
    peft.peft_config["default"].target_modules = adapted_layers(peft)
    beside = folder.with_name(f".{folder.name}.tmp")
    trainer.save_model(str(beside))
    if trainer.accelerator.is_main_process:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ADAPTER_FILES:
            (beside / name).replace(folder / name)
        shutil.rmtree(beside)


def adapted_layers(peft: Any) -> list[str]:
    """The names of the layers that have LoRA matrices: what "all-linear" came to."""
    names = (name for name, module in peft.named_modules() if hasattr(module, "lora_A"))
    return sorted({name.split(".")[-1] for name in names})
