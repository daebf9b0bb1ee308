"""LoRA adapter folders (arXiv 2106.09685), and the layers of a language model that they change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from rewriting.errors import UserError

WEIGHTS = "adapter_model.safetensors"
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def attention_layers(model: torch.nn.Module) -> tuple[str, ...]:
    """The names of a model's attention layers, as Llama or as GPT-2 and its relatives say them."""
    names = {name.split(".")[-1] for name, _ in model.named_modules()}
    for layers in (ATTENTION, ("c_attn",), ("query_key_value",), ("qkv_proj", "o_proj")):
        if names.issuperset(layers):
            return layers
    raise UserError("the attention layers of this model are not known: name them with targets.")


def check_adapter(model: Any, folder: Path) -> None:
    """Raise unless the folder holds a LoRA adapter for just the layers that the model has.

    PEFT passes over weights that find no place, and leaves places without weights as they are.
    """
    from safetensors import safe_open

    config_file = folder / "adapter_config.json"
    if not (folder / WEIGHTS).is_file() or not config_file.is_file():
        raise UserError(f"{folder} is no adapter folder: it needs {WEIGHTS} and its config.")
    config = json.loads(config_file.read_text(encoding="utf-8"))
    if config.get("peft_type") != "LORA" or not isinstance(config.get("target_modules"), list):
        raise UserError(f"{folder} is no LoRA adapter for named layers.")
    widths = {}
    with safe_open(folder / WEIGHTS, framework="pt") as file:
        for key in file.keys():  # noqa: SIM118 (the file is no dictionary)
            if key.endswith(".lora_A.weight"):
                name = key.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                widths[name] = file.get_slice(key).get_shape()[1]
    expected = {
        name: module.in_features
        for name, module in model.named_modules()
        if name.split(".")[-1] in config["target_modules"] and hasattr(module, "in_features")
    }
    if widths != expected:
        base = config.get("base_model_name_or_path") or "another model"
        raise UserError(f"the adapter in {folder} does not fit this model; it is for {base}.")
