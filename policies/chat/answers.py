"""A chat model that answers requests: loaded by name, with a trained adapter where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from policies.chat.rewriter import with_adapter
from policies.reading.sampling import RowSampler
from rewriting import Exchange
from rewriting.runtime.models.named import load_causal
from rewriting.runtime.seeds import derive_seed


class ChatModel:
    """Samples an answer to each request; a row's answer depends on its seed and itself alone.

    adapter: the folder of a LoRA adapter for that model; it is merged into the weights. Rows are
    batched by length.
    """

    def __init__(
        self,
        model_name: str,
        *,
        adapter: Path | None = None,
        batch_size: int = 16,
        max_new_tokens: int = 72,
        temperature: float = 0.5,
        top_p: float = 0.9,
    ) -> None:
        self.model, self.tokenizer = load_causal(model_name)
        if adapter is not None:
            self.model = with_adapter(self.model, adapter)
        self.batch_size = batch_size
        self.max_new_tokens = max_new_tokens
        self.temperature = temperature
        self.top_p = top_p

    def answers(
        self,
        prompt: Any,
        exchanges: Sequence[Exchange],
        end_tokens: Sequence[int],
        *,
        seed: int,
    ) -> list[str]:
        """What the model says about each exchange. prompt: has `text(exchange)` and `tokens`."""
        requests = [prompt.tokens(prompt.text(exchange)) for exchange in exchanges]
        order = sorted(range(len(requests)), key=lambda i: len(requests[i]))
        found: dict[int, str] = {}
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            seeds = [row_seed(exchanges[i], seed) for i in batch]
            texts = self._generate([requests[i] for i in batch], seeds, list(end_tokens))
            found |= dict(zip(batch, texts, strict=True))
        return [found[i] for i in range(len(exchanges))]

    @torch.inference_mode()
    def _generate(
        self, requests: list[list[int]], seeds: list[int], end_tokens: list[int]
    ) -> list[str]:
        inputs = self.tokenizer.pad({"input_ids": requests}, return_tensors="pt")
        inputs = inputs.to(self.model.device)
        output = self.model.generate(
            **inputs,
            max_new_tokens=self.max_new_tokens,
            do_sample=False,
            eos_token_id=end_tokens,
            logits_processor=[RowSampler(seeds, self.max_new_tokens, self.temperature, self.top_p)],
        )
        new = output[:, inputs["input_ids"].shape[1] :]
        texts: list[str] = self.tokenizer.batch_decode(new, skip_special_tokens=True)
        return texts


def row_seed(exchange: Exchange, seed: int) -> int:
    """A seed for one pair of posts, the same wherever in a file or batch it stands."""
    return derive_seed(seed, exchange.seeker_post, exchange.response_post)
