"""What `train.py grpo` has to mind where FSDP or DeepSpeed share the model out over processes.

The order of loading is all of it: a GPU for each process, then the reward models, whole on every
process; then TRL's arguments, from which on ZeRO 3 cuts up every model that is loaded; then the
policy. Left out: reward models that are sharded themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewriting.errors import UserError


def begin() -> None:
    """Give this process its GPU, before a model is loaded: all would go to the first one."""
    import torch
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    if uses_fsdp() and parse_flag_from_env("FSDP_CPU_RAM_EFFICIENT_LOADING"):
        raise UserError(
            "fsdp_cpu_ram_efficient_loading leaves the reward models empty on all processes but "
            "the first. Set it to false, as configs/launch/fsdp.yaml does."
        )
    PartialState(cpu=not torch.cuda.is_available())


def uses_fsdp() -> bool:
    """Whether accelerate's launcher asked for FSDP."""
    from accelerate.utils import parse_flag_from_env

    return bool(parse_flag_from_env("ACCELERATE_USE_FSDP"))


def load_policy(name: str) -> tuple[Any, Any]:
    """The model to train, and its tokenizer.

    FSDP takes it from the CPU layer by layer: whole, it may be larger than a GPU. ZeRO 3 cuts it up
    while it is read, provided TRL's arguments have been made before.
    """
    import torch

    from rewriting.runtime.models.named import load_causal

    dtype = torch.bfloat16 if torch.cuda.is_available() else torch.float32
    return load_causal(name, dtype=dtype, device="cpu" if uses_fsdp() else None)


def with_warm_start(model: Any, folder: Path | None, arguments: Any) -> Any:
    """The model with the adapter of a warm start, which is trained on; as it is without one.

    As TRL does it for a new adapter, ZeRO 3 gets the matrices in the model's own number format.
    """
    if folder is None:
        return model
    from peft import PeftModel

    plugin = arguments.deepspeed_plugin
    own_format = bool(plugin) and plugin.zero_stage == 3
    trained = PeftModel.from_pretrained(
        model, folder, is_trainable=True, autocast_adapter_dtype=not own_format
    )
    # The folder has the model's name, which PEFT would look for on the hub at every checkpoint.
    trained.peft_config["default"].base_model_name_or_path = model.config.name_or_path
    return trained


def sample_together(trainer: Any, model: Any) -> None:
    """Let all processes go on sampling until the last one has ended.

    Every token gathers the layers from all of them, so one that stopped early would leave the
    others waiting for ever. transformers does this for ZeRO 3 and for models that it shards itself,
    which it knows by this mark; it does not see that accelerate's FSDP 2 has sharded one.
    """
    if trainer.is_fsdp_enabled:
        model._is_fsdp_managed_module = True
