"""LoRA (arXiv 2106.09685): how its matrices are put into a model, and written to a folder."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rewriting.runtime.files.tensors import save_tensors
from rewriting.runtime.language_models.adapters import WEIGHTS

if TYPE_CHECKING:
    from peft import LoraConfig


def lora_config(
    rank: int,
    layers: Sequence[str] | str,
    *,
    alpha: int,
    dropout: float = 0.0,
    task: str | None = None,
) -> LoraConfig:
    """PEFT's settings. layers: names, or PEFT's `all-linear`. alpha / rank scales what is added."""
    from peft import LoraConfig

    return LoraConfig(
        r=rank,
        lora_alpha=alpha,
        lora_dropout=dropout,
        target_modules=layers if isinstance(layers, str) else list(layers),
        task_type=task,
    )


def add_lora(
    model: nn.Module,
    rank: int,
    *,
    alpha: int,
    dropout: float = 0.0,
    leave_out: nn.Module | None = None,
) -> None:
    """Put LoRA on every linear layer of a model, in place; everything else in it is frozen.

    leave_out: a layer that stays as it is, such as the output layer of a language model.
    """
    from peft import inject_adapter_in_model

    linear = sorted(
        name
        for name, part in model.named_modules()
        if isinstance(part, nn.Linear) and part is not leave_out
    )
    inject_adapter_in_model(lora_config(rank, linear, alpha=alpha, dropout=dropout), model)


def with_adapter(model: nn.Module, adapters: Any, config: LoraConfig, role: str) -> Any:
    """PEFT's view of a model with one more adapter. adapters: that view so far; None without."""
    from peft import get_peft_model

    with warnings.catch_warnings():
        # GPT-2's layers are transposed: PEFT sees it, adapts to it, and warns that it did.
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to")
        if adapters is None:
            return get_peft_model(model, config, adapter_name=role)
        adapters.add_adapter(role, config)
    return adapters


def save_adapter(
    adapters: Any,
    role: str,
    tensors: Mapping[str, Tensor],
    folder: Path,
    *,
    model: str,
    dtype: torch.dtype | None = None,
) -> None:
    """Write PEFT's two files of an adapter. model: the name that the config gives its base."""
    save_tensors(tensors, folder / WEIGHTS, dtype=dtype)
    config = adapters.peft_config[role]
    config.base_model_name_or_path = model  # not this machine's path of it
    saved = copy.copy(config)
    saved.inference_mode = True
    if isinstance(config.target_modules, set):  # whose order differs from process to process
        saved.target_modules = sorted(config.target_modules)
    saved.save_pretrained(folder)
