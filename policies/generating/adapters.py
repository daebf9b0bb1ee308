"""What is trained of a generator, in roles that share one frozen model.

A role is a prefix or a LoRA adapter (arXiv 2106.09685). `acting(role)` puts it in place: a prefix
is handed to whoever reads, a LoRA adapter is switched on inside the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from policies.generating.models import AnyModel
from policies.generating.prefix import Prefix, load_prefix, save_prefix

START = (
    "I am so sorry to hear that. That must have been really hard for you. I understand how you "
    "feel, and I am here for you. What happened? How are you feeling about it now?"
)
"""Whose keys and values a prefix starts as: with those of real words training is steadier than
with random ones (arXiv 2101.00190, section 7.4)."""


class Adapters(Protocol):
    """The adapters of one model, by role."""

    module: nn.Module

    def add(self, role: str) -> None: ...
    def copy(self, source: str, target: str) -> None: ...
    def parameters(self, role: str) -> list[nn.Parameter]: ...
    def acting(self, role: str) -> Any: ...
    def save(self, role: str, folder: Path, name: str, dtype: torch.dtype | None) -> None: ...
    def load(self, role: str, folder: Path) -> None: ...


class NoAdapters:
    """The model as it is in every role: nothing to train but the value head."""

    def __init__(self) -> None:
        self.module: nn.Module = nn.Identity()

    def add(self, role: str) -> None: ...
    def copy(self, source: str, target: str) -> None: ...
    def parameters(self, role: str) -> list[nn.Parameter]:
        return []

    @contextmanager
    def acting(self, role: str) -> Iterator[None]:
        yield None

    def save(self, role: str, folder: Path, name: str, dtype: torch.dtype | None) -> None: ...
    def load(self, role: str, folder: Path) -> None: ...


class PrefixAdapters:
    """A prefix per role. The model knows nothing of them."""

    def __init__(self, model: AnyModel, num_virtual_tokens: int) -> None:
        self.model = model
        self.num_virtual_tokens = num_virtual_tokens
        self._prefixes = nn.ModuleDict()
        self.module: nn.Module = self._prefixes

    @torch.no_grad()
    def add(self, role: str) -> None:
        words = list(self.model.tokenizer(START, add_special_tokens=False)["input_ids"])
        repeats = -(-self.num_virtual_tokens // len(words))
        cache = self.model.first_cache((words * repeats)[: self.num_virtual_tokens])
        self._prefixes[role] = Prefix(cache)

    def _prefix(self, role: str) -> Prefix:
        prefix = self._prefixes[role]
        assert isinstance(prefix, Prefix)
        return prefix

    @torch.no_grad()
    def copy(self, source: str, target: str) -> None:
        self._prefix(target).weight_L2HPK.copy_(self._prefix(source).weight_L2HPK)

    def parameters(self, role: str) -> list[nn.Parameter]:
        return list(self._prefixes[role].parameters())

    @contextmanager
    def acting(self, role: str) -> Iterator[Prefix]:
        yield self._prefix(role)

    def save(self, role: str, folder: Path, name: str, dtype: torch.dtype | None) -> None:
        prefix, is_seq2seq = self._prefix(role), self.model.is_seq2seq
        save_prefix(prefix, folder, model=name, is_seq2seq=is_seq2seq, dtype=dtype)

    def load(self, role: str, folder: Path) -> None:
        load_prefix(self._prefix(role), folder, is_seq2seq=self.model.is_seq2seq)
