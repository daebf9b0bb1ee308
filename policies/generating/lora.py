"""LoRA adapters (arXiv 2106.09685) of a generator, in roles that are switched inside the model.

Of an encoder-decoder only the decoder gets them, and in its cross-attention only what makes queries
and outputs: encoder outputs, and the keys and values made of them, stay the same for all roles.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from policies.generating.models import AnyModel
from rewriting.errors import UserError
from rewriting.runtime.files.tensors import load_tensors
from rewriting.runtime.language_models.adapters import WEIGHTS, attention_layers
from rewriting.runtime.language_models.lora import lora_config, save_adapter, with_adapter


class LoraAdapters:
    """An adapter per role, in a model that nobody else puts adapters into."""

    def __init__(self, model: AnyModel, rank: int) -> None:
        self.model = model
        self.rank = rank
        self.module: nn.Module = model.model
        self.targets = target_layers(model)
        self._peft: Any = None
        self._active = ""

    def add(self, role: str) -> None:
        task = "SEQ_2_SEQ_LM" if self.model.is_seq2seq else "CAUSAL_LM"
        config = lora_config(self.rank, self.targets, alpha=self.rank, task=task)
        self._peft = with_adapter(self.model.model, self._peft, config, role)
        self._active = self._active or role

    def _named(self, role: str) -> dict[str, nn.Parameter]:
        """The parameters of an adapter by their names in a file: without the role."""
        return {
            name.replace(f".{role}.", "."): parameter
            for name, parameter in self._peft.named_parameters()
            if f".{role}." in name
        }

    def parameters(self, role: str) -> list[nn.Parameter]:
        return list(self._named(role).values())

    @torch.no_grad()
    def copy(self, source: str, target: str) -> None:
        found = self._named(source)
        for name, parameter in self._named(target).items():
            parameter.copy_(found[name])

    @contextmanager
    def acting(self, role: str) -> Iterator[None]:
        before = self._active
        self._switch(role)
        try:
            yield None
        finally:
            self._switch(before)

    def _switch(self, role: str) -> None:
        if role == self._active:
            return
        # PEFT makes what it activates trainable and freezes the rest; here roles stay as they are.
        flags = [(parameter, parameter.requires_grad) for parameter in self._peft.parameters()]
        self._peft.set_adapter(role)
        for parameter, flag in flags:
            parameter.requires_grad_(flag)
        self._active = role

    def save(self, role: str, folder: Path, name: str, dtype: torch.dtype | None) -> None:
        save_adapter(self._peft, role, self._named(role), folder, model=name, dtype=dtype)

    @torch.no_grad()
    def load(self, role: str, folder: Path) -> None:
        found, named = load_tensors(folder / WEIGHTS), self._named(role)
        if {k: v.shape for k, v in found.items()} != {k: v.shape for k, v in named.items()}:
            raise UserError(
                f"{folder / WEIGHTS} does not fit this model: it is of a generator on another one."
            )
        for name, parameter in named.items():
            parameter.copy_(found[name])


def target_layers(model: AnyModel) -> list[str]:
    """The names of the attention layers that get adapters."""
    if not model.is_seq2seq:
        return list(attention_layers(model.model))
    decoder = model.model.get_decoder()
    within = next(n for n, module in model.model.named_modules() if module is decoder)
    cross_words, cross_inputs = ("EncDecAttention", "encoder_attn"), ("k", "v", "k_proj", "v_proj")
    found = []
    for name, module in decoder.named_modules():
        is_attention = "Attention" in name or "_attn" in name
        crossing = any(word in name for word in cross_words)
        shared = crossing and name.split(".")[-1] in cross_inputs
        if isinstance(module, nn.Linear) and is_attention and not shared:
            found.append(f"{within}.{name}")
    if not found:
        raise UserError("the attention layers of this model are not known: use adapter prefix.")
    return found
