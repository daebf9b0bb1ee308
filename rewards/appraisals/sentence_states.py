"""Sentences as vectors: the mean token state in three layers of an encoder.

What a sentence is about stands in the last layer of a sentence encoder; how it says it (a piece of
advice, a doubt, whose doing it was) stands more plainly in the middle. On our corpus a linear rule
on layers a third, two thirds and all the way up tells appraisals better than one on the last alone
(docs/results/appraisals.md).

Legend: N texts, T tokens, K = 3 layers, D width of the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from rewriting.runtime.cache import CACHE_SIZE, ScoreCache
from rewriting.runtime.models.named import load_encoder

LAYERS = 3
MAX_TOKENS = 128


class SentenceStates(nn.Module):
    """An encoder that is frozen (rank 0), or carries LoRA matrices that are trained.

    `embed` remembers what it has seen; `forward` is for training. With a batch_size of 1 a vector
    does not depend on its batch, down to the last bit; larger ones are faster, for large files.
    """

    batch_size = 1

    def __init__(
        self,
        encoder: Any,
        tokenizer: Any,
        *,
        name: str = "",
        rank: int = 0,
        cache_size: int = CACHE_SIZE,
    ) -> None:
        super().__init__()
        from rewriting.runtime.language_models.lora import add_lora

        self.encoder = encoder.requires_grad_(False)
        if rank:
            add_lora(self.encoder, rank, alpha=2 * rank)
        self.tokenizer = tokenizer
        self.name = name
        self.rank = rank
        depth = encoder.config.num_hidden_layers
        self.layers = [max(1, round(depth * part / LAYERS)) for part in range(1, LAYERS + 1)]
        self.width = int(encoder.config.hidden_size)
        self._known: ScoreCache[str, Tensor] = ScoreCache(self._read, cache_size)
        self.eval()

    @classmethod
    def load(cls, name: str = "minilm-l6", *, rank: int = 0, cache_size: int = CACHE_SIZE) -> Self:
        encoder, tokenizer = load_encoder(name, torch.float32)
        return cls(encoder, tokenizer, name=name, rank=rank, cache_size=cache_size)

    def serves(self, name: str, rank: int) -> bool:
        """Whether these states are those of a frozen encoder of that name, so that another model
        may share them: matrices that were trained for one are nobody else's."""
        return self.name == name and not rank and not self.rank

    def forward(self, texts: Sequence[str]) -> Tensor:
        """[N, K, D]: unit vectors, one per layer. A blank text is read as its special tokens."""
        read = self.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=MAX_TOKENS,
            return_tensors="pt",
        ).to(self.encoder.device)
        states = self.encoder(
            input_ids=read["input_ids"],
            attention_mask=read["attention_mask"],
            output_hidden_states=True,
        ).hidden_states
        mask_NT1 = read["attention_mask"][..., None].to(states[0].dtype)
        sums_NKD = torch.stack([(states[k] * mask_NT1).sum(dim=1) for k in self.layers], dim=1)
        return nn.functional.normalize(sums_NKD, dim=-1)

    def embed(self, texts: Sequence[str]) -> Tensor:
        """[N, K, D] on the CPU, without gradients; equal texts are read once."""
        if not texts:
            return torch.zeros(0, LAYERS, self.width)
        return torch.stack(self._known(texts))

    def forget(self) -> None:
        """Drop what is remembered: the weights have changed."""
        self._known = ScoreCache(self._read, self._known.size)

    @torch.no_grad()
    def _read(self, texts: list[str]) -> list[Tensor]:
        """Texts of similar length share a batch."""
        training = self.training
        self.eval()
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        found: dict[int, Tensor] = {}
        for start in range(0, len(order), self.batch_size):
            places = order[start : start + self.batch_size]
            vectors = self.forward([texts[place] for place in places]).cpu()
            found |= zip(places, vectors, strict=True)
        self.train(training)
        return [found[place] for place in range(len(texts))]
