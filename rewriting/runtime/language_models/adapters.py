"""LoRA adapter folders (arXiv 2106.09685), and the layers of a language model that they change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from rewriting.errors import UserError
from rewriting.runtime.files.folder_checks import check_folder
from rewriting.runtime.files.json_files import read_json

WEIGHTS = "adapter_model.safetensors"
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


def attention_layers(model: torch.nn.Module) -> tuple[str, ...]:
    """The names of a model's attention layers, as Llama or as GPT-2 and its relatives say them."""
    names = {name.split(".")[-1] for name, _ in model.named_modules()}
    for layers in (ATTENTION, ("c_attn",), ("query_key_value",), ("qkv_proj", "o_proj")):
        if names.issuperset(layers):
            return layers
    raise UserError("the attention layers of this model are not known: name them with lora_layers.")


def check_adapter(model: Any, folder: Path) -> None:
    """Raise unless the folder holds a LoRA adapter for just the layers that the model has.

    PEFT passes over weights that find no place, and leaves places without weights as they are.
    """
    from safetensors import SafetensorError, safe_open

    config_file = folder / "adapter_config.json"
    if not (folder / WEIGHTS).is_file() or not config_file.is_file():
        raise UserError(f"{folder} is no adapter folder: it needs {WEIGHTS} and its config.")
    check_folder(folder)
    config = read_json(config_file)
    is_lora = isinstance(config, dict) and config.get("peft_type") == "LORA"
    if not is_lora or not isinstance(config.get("target_modules"), list):
        raise UserError(f"{folder} is no LoRA adapter for named layers.")
    widths, ranks = {}, set()
    try:
        with safe_open(folder / WEIGHTS, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118 (the file is no dictionary)
                if key.endswith(".lora_A.weight"):
                    name = key.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                    rank, widths[name] = file.get_slice(key).get_shape()
                    ranks.add(rank)
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"{folder / WEIGHTS} is damaged ({error}). Get it again.") from error
    pattern, alpha = config.get("rank_pattern") or {}, config.get("lora_alpha")
    if (
        not isinstance(pattern, dict)
        or isinstance(alpha, bool)
        or not isinstance(alpha, int | float)
    ):
        raise UserError(f"{config_file}: rank_pattern is a mapping and lora_alpha a number.")
    said = [config.get("r"), *pattern.values()]
    if any(rank not in list(ranks) for rank in said):  # PEFT makes room by what is said
        raise UserError(f"{config_file} says rank {said[0]}; the weights have another one.")
    expected = {
        name: module.in_features
        for name, module in model.named_modules()
        if name.split(".")[-1] in config["target_modules"] and hasattr(module, "in_features")
    }
    if widths != expected:
        base = config.get("base_model_name_or_path") or "another model"
        raise UserError(f"the adapter in {folder} does not fit this model; it is for {base}.")
