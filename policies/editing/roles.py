"""The weights of an edit policy on a backbone: a LoRA adapter in a role, or the model itself."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from policies.editing.settings import EditSettings
from rewriting.errors import UserError
from rewriting.runtime.language_models.adapters import WEIGHTS, attention_layers
from rewriting.runtime.language_models.backbone import Backbone

HEAD_WEIGHTS = "position_head.safetensors"


def add_role(backbone: Backbone, role: str, settings: EditSettings) -> str | None:
    """Weights to train: a new adapter, by the name it got; None is the model itself, with rank 0.

    Several policies may share a backbone: the second one is called policy_2.
    """
    if not settings.rank:
        if backbone.roles:
            raise ValueError(
                "a policy of rank 0 trains the model itself: give it a backbone without other roles"
            )
        backbone.model.requires_grad_(True)
        return None
    names = (role, *(f"{role}_{number}" for number in range(2, len(backbone.roles) + 3)))
    name = next(name for name in names if name not in backbone.roles)
    with warnings.catch_warnings():
        # GPT-2's layers are transposed: PEFT sees it, adapts to it, and warns that it did.
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to")
        backbone.add(
            name,
            rank=settings.rank,
            alpha=settings.alpha,
            dropout=settings.dropout,
            targets=settings.lora_layers or attention_layers(backbone.model),
        )
    return name


def adapter_state(backbone: Backbone, role: str) -> dict[str, nn.Parameter]:
    """The parameters of an adapter by their names, the role left out of them."""
    return {
        name.replace(f".{role}.", "."): parameter
        for name, parameter in backbone.model.named_parameters()
        if f".{role}." in name
    }


def freeze(backbone: Backbone, role: str | None) -> None:
    """End the training of an adapter, or of the whole model; other roles stay as they are."""
    parameters = adapter_state(backbone, role) if role else dict(backbone.model.named_parameters())
    for parameter in parameters.values():
        parameter.requires_grad_(False)


def copy_adapter(backbone: Backbone, source: str, target: str) -> None:
    copy_state(adapter_state(backbone, source), adapter_state(backbone, target))


@torch.no_grad()
def copy_state(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    for name, parameter in target.items():
        parameter.copy_(source[name])


def load_adapter(backbone: Backbone, role: str, folder: Path) -> None:
    """Fill a role with the weights of an adapter folder; each must find its place."""
    prefix = "base_model.model."
    found = {name.removeprefix(prefix): w for name, w in _tensors(folder / WEIGHTS).items()}
    _fill(adapter_state(backbone, role), found, folder / WEIGHTS)


def load_head(head: nn.Module, folder: Path) -> None:
    path = folder / HEAD_WEIGHTS
    _fill(dict(head.named_parameters()), _tensors(path), path)


def save_head(head: nn.Module, folder: Path, dtype: torch.dtype | None = None) -> None:
    from safetensors.torch import save_file

    state = head.state_dict()
    tensors = {k: v.detach().to("cpu", dtype or v.dtype).contiguous() for k, v in state.items()}
    save_file(tensors, folder / HEAD_WEIGHTS, metadata={"format": "pt"})
    (folder / HEAD_WEIGHTS).chmod(0o644)  # safetensors writes 0600


def _tensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} cannot be read ({error}). Get the policy again.") from error


def _fill(target: Mapping[str, Tensor], source: Mapping[str, Tensor], path: Path) -> None:
    shapes = [{name: tuple(w.shape) for name, w in part.items()} for part in (target, source)]
    if shapes[0] != shapes[1]:
        raise UserError(f"{path} does not fit this model: it is of a policy on another one.")
    copy_state(source, target)
