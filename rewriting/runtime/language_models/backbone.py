"""One frozen causal language model, loaded once, in many roles.

Fluency, the forward and the backward language model of mutual information, a reference, a policy:
each is a LoRA adapter (arXiv 2106.09685) on the same weights, switched by name, never a copy.

    backbone = Backbone.load("smollm2-135m")
    backbone.attach("reverse_lm", "rewards/shipped/reverse_lm")
    with backbone.role("reverse_lm"):
        log_probs = backbone.token_log_probs(prefixes, continuations)

Equal pairs of texts are scored once (`scores`), and texts that begin alike are read once as far as
they do (token_trees.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rewriting.runtime.batches import batches_by_length, max_padding
from rewriting.runtime.cache import ScoreCache
from rewriting.runtime.language_models.adapters import ATTENTION, check_adapter
from rewriting.runtime.language_models.log_probs import (
    continuation_log_probs,
    has_plain_head,
    start_token,
)
from rewriting.runtime.language_models.lora import lora_config, save_adapter, with_adapter
from rewriting.runtime.language_models.token_trees import (
    Pair,
    reads_trees,
    tree_log_probs,
    trees_of,
)
from rewriting.runtime.models.named import load_causal
from rewriting.runtime.models.options import DEFAULT, ModelOptions

REMEMBERED_CALLS = 16
Call = tuple[str | None, tuple[tuple[str, str], ...]]  # a role; prefixes and continuations


@dataclass(frozen=True, slots=True)
class LogProb:
    """The log-probability of a text: the sum over its tokens, and how many they are."""

    total: float
    num_tokens: int

    @property
    def mean(self) -> float:
        return self.total / self.num_tokens


class Backbone:
    """A causal language model and its roles. The model itself is frozen; adapters may be trained.

    max_batch_tokens: tokens of a batch, padding included; 1 scores row by row. It bounds memory and
    changes a score by rounding alone. The default is what was fastest: on a CPU short batches stay
    in its cache.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str = "",
        max_batch_tokens: int | None = None,
    ) -> None:
        self.model = model.requires_grad_(False).eval()
        self.tokenizer = tokenizer
        self.name = name
        self.max_batch_tokens = max_batch_tokens or (1024 if model.device.type == "cpu" else 8192)
        self.max_length = int(getattr(model.config, "max_position_embeddings", 2048))
        self.start_token = start_token(tokenizer)
        self.plain_head = has_plain_head(model)
        self.roles: list[str] = []
        self._folders: dict[str, Path] = {}  # of the frozen roles
        self._role: str | None = None
        self._adapters: Any = None
        self._remembered = ScoreCache(self._calls, REMEMBERED_CALLS)

    @classmethod
    def load(
        cls,
        name: str = "smollm2-135m",
        *,
        dtype: torch.dtype | None = None,
        options: ModelOptions = DEFAULT,
        max_batch_tokens: int | None = None,
    ) -> Backbone:
        """A backbone of its own, by model name: what a run that trains an adapter needs."""
        model, tokenizer = load_causal(name, dtype, options=options)
        return cls(model, tokenizer, name=name, max_batch_tokens=max_batch_tokens)

    @staticmethod
    def shared(name: str = "smollm2-135m", *, options: ModelOptions = DEFAULT) -> Backbone:
        """The one backbone of this name in this process: what reward terms use by default.

        One that is loaded in another way than by default is one of its own.
        """
        return _shared(name, options)

    def attach(self, role: str, folder: str | Path) -> None:
        """Load a LoRA adapter folder (safetensors and JSON) as a frozen role.

        The same folder in the same role again is nothing new.
        """
        from peft import PeftModel

        folder = Path(folder).resolve()
        if self._folders.get(role) == folder:
            return
        self._check_new(role)
        check_adapter(self.model, folder)
        if self._adapters is None:
            self._adapters = PeftModel.from_pretrained(self.model, folder, adapter_name=role)
        else:
            self._adapters.load_adapter(folder, adapter_name=role)
        self._folders[role] = folder
        self._attached(role, trainable=False)

    def add(
        self,
        role: str,
        *,
        rank: int = 8,
        alpha: int = 16,
        dropout: float = 0.0,
        targets: Sequence[str] = ATTENTION,
    ) -> list[torch.nn.Parameter]:
        """A new LoRA adapter to train; its parameters. Until trained it changes nothing."""
        self._check_new(role)
        config = lora_config(rank, targets, alpha=alpha, dropout=dropout, task="CAUSAL_LM")
        self._adapters = with_adapter(self.model, self._adapters, config, role)
        return self._attached(role, trainable=True)

    def _check_new(self, role: str) -> None:
        if role in self.roles:
            raise ValueError(f"the backbone has a role {role!r} already")

    def _attached(self, role: str, trainable: bool) -> list[torch.nn.Parameter]:
        """Set the flags of a new adapter, and go back to the role that was active."""
        named = [(n, p) for n, p in self.model.named_parameters() if f".{role}." in n]
        for _, parameter in named:
            parameter.requires_grad_(trainable)
        self.roles.append(role)
        self._switch(self._role)
        return [parameter for _, parameter in named]

    def save(self, role: str, folder: str | Path, *, dtype: torch.dtype | None = None) -> None:
        """Write a role as an adapter folder. float16 halves the file and rounds the weights."""
        from peft import get_peft_model_state_dict

        state = get_peft_model_state_dict(
            self._adapters, adapter_name=role, save_embedding_layers=False
        )
        save_adapter(self._adapters, role, state, Path(folder), model=self.name, dtype=dtype)

    @contextmanager
    def role(self, name: str | None) -> Iterator[Any]:
        """The model in a role, or bare with None; afterwards in the role it had before."""
        if name is not None and name not in self.roles:
            known = ", ".join(self.roles) or "none"
            raise ValueError(f"the backbone has no role {name!r}; attached: {known}")
        before = self._role
        if name == before:  # switching looks at every parameter
            yield self.model
            return
        self._switch(name)
        try:
            yield self.model
        finally:
            self._switch(before)

    def _switch(self, name: str | None) -> None:
        self._role = name
        if self._adapters is None:
            return
        # PEFT makes what it activates trainable and freezes the rest. Here a role that is merely
        # looked at stays frozen, and one in training stays trainable.
        flags = [(parameter, parameter.requires_grad) for parameter in self.model.parameters()]
        if name is None:
            self._adapters.base_model.disable_adapter_layers()
        else:
            self._adapters.base_model.enable_adapter_layers()
            self._adapters.set_adapter(name)
        for parameter, flag in flags:
            parameter.requires_grad_(flag)

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text. What looks like a special token in it is read as plain text."""
        encoded = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)
        return list(encoded["input_ids"])

    @torch.no_grad()
    def token_log_probs(
        self, prefixes: Sequence[str], continuations: Sequence[str]
    ) -> list[Tensor]:
        """log p of each token of each continuation after its prefix, in the active role.

        Every token counts, the first as well: an empty prefix is a start token. Prefix and
        continuation are tokenised apart, so that a prefix never changes what is scored. Where both
        do not fit the model, the prefix loses its beginning, and then the continuation its end.
        Batch size, order and padding do not matter. Returns float32 tensors on the CPU.
        """
        tokens = [self.tokens(text) for text in continuations]
        return self._batched([self.tokens(prefix) for prefix in prefixes], tokens)

    def _batched(self, prefixes: list[list[int]], continuations: list[list[int]]) -> list[Tensor]:
        pairs = [
            self.fitted(prefix, continuation)
            for prefix, continuation in zip(prefixes, continuations, strict=True)
        ]
        training = self.model.training
        self.model.eval()  # a score has no dropout in it, also in the middle of a training step
        trees = trees_of(pairs, self.max_batch_tokens)
        shares = len(trees) < len(pairs) and self.reads_trees
        results: dict[int, Tensor] = {}
        for batch in self._cut(
            [len(tree.tokens) for tree in trees] if shares else map(size, pairs)
        ):
            if shares:
                chosen = [trees[i] for i in batch]
                found = tree_log_probs(self.model, chosen, pairs, plain_head=self.plain_head)
            else:
                apart = [pairs[i] for i in batch]
                rows = continuation_log_probs(self.model, apart, plain_head=self.plain_head)
                found = dict(zip(batch, rows, strict=True))
            results |= {i: row.cpu() for i, row in found.items()}
        self.model.train(training)
        return [results[i] for i in range(len(pairs))]

    def _cut(self, lengths: Iterable[int]) -> Iterator[list[int]]:
        padding = max_padding(self.model.device)
        return batches_by_length(list(lengths), self.max_batch_tokens, padding)

    @cached_property
    def reads_trees(self) -> bool:
        """Whether texts that begin alike can be read as one tree."""
        return reads_trees(self.model)

    def fitted(
        self, prefix: Sequence[int], continuation: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """Prefix and continuation cut to what the model can read; the prefix is never empty."""
        continuation = list(continuation[: self.max_length - 1])
        room = self.max_length - len(continuation)
        return (list(prefix) or [self.start_token])[-room:], continuation

    def scores(
        self, prefixes: Sequence[str], continuations: Sequence[str], role: str | None = None
    ) -> list[LogProb]:
        """The log-probability of each continuation in a role. Equal pairs are scored once.

        The last calls are remembered whole, so that fluency and perplexity of one step cost one
        pass. Single pairs are not: what a batch is made of, and with it the rounding, would then
        depend on the past, and a run resumed with an empty memory would not give the same bits.

        A blank continuation says one thing only, that the text is over: it is scored as the end
        token. So saying nothing has a finite price, and not the log-probability 0 of no tokens.
        """
        call = (role, tuple(zip(prefixes, continuations, strict=True)))
        if role is None or role in self._folders:
            return list(self._remembered([call])[0])
        return self._calls([call])[0]  # in training: it gives other numbers tomorrow

    def _calls(self, calls: Sequence[Call]) -> list[list[LogProb]]:
        return [self._scores(role, pairs) for role, pairs in calls]

    @torch.no_grad()
    def _scores(self, role: str | None, pairs: Sequence[tuple[str, str]]) -> list[LogProb]:
        end = [self.tokenizer.eos_token_id]
        different = list(dict.fromkeys(pairs))
        tokens = [self.tokens(text) if text.strip() else end for _, text in different]
        with self.role(role):
            rows = self._batched([self.tokens(prefix) for prefix, _ in different], tokens)
        values = [LogProb(float(row.double().sum()), len(row)) for row in rows]
        known = dict(zip(different, values, strict=True))
        return [known[pair] for pair in pairs]


def size(pair: Pair) -> int:
    """The tokens of a prefix and its continuation."""
    return sum(map(len, pair))


@lru_cache(maxsize=2)
def _shared(name: str, options: ModelOptions) -> Backbone:
    return Backbone.load(name, options=options)
