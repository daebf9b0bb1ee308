"""A causal chat model that rewrites the whole reply when it is asked to.

`prompted` is the model as it is, a baseline. A rewriter (policies/chat/rewriter.py) is the same
with an adapter that `train.py grpo` trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from policies.chat.rewrite_prompt import RewritePrompt, clean_reply, end_tokens
from policies.chat.rewriter import read_rewriter, with_adapter
from policies.reading.sampling import RowSampler
from rewriting import Exchange, Rewrite
from rewriting.runtime.models import load_causal
from rewriting.runtime.seeds import derive_seed


class PromptedPolicy:
    """Rewrites whole responses with a chat model by name, through its own chat template.

    adapter: the folder of a LoRA adapter for that model; it is merged into the weights. A row's
    sample depends on the seed and the row alone (policies/reading/sampling.py). Rows are batched
    by length.
    """

    def __init__(
        self,
        model_name: str = "smollm2-135m",
        *,
        adapter: Path | None = None,
        batch_size: int = 16,
        max_new_tokens: int = 72,
        max_prompt_tokens: int = 768,
        temperature: float = 0.5,
        top_p: float = 0.9,
        name: str = "prompted",
    ) -> None:
        self.name = name
        self.model, self.tokenizer = load_causal(model_name)
        if adapter is not None:
            self.model = with_adapter(self.model, adapter)
        self.prompt = RewritePrompt(self.tokenizer, max_prompt_tokens)
        self.batch_size = batch_size
        self.max_new_tokens = max_new_tokens
        self.temperature = temperature
        self.top_p = top_p
        self.end_tokens = end_tokens(self.tokenizer)

    @classmethod
    def load(cls, folder: Path, *, name: str = "") -> PromptedPolicy:
        """The rewriter in a folder that `train.py grpo` wrote."""
        settings = read_rewriter(folder)
        return cls(
            settings.model,
            adapter=folder,
            max_new_tokens=settings.max_new_tokens,
            max_prompt_tokens=settings.max_prompt_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
            name=name or str(folder),
        )

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        replies = self.replies(exchanges, seed=seed)
        return [
            Rewrite(exchange, reply or exchange.response_post)
            for exchange, reply in zip(exchanges, replies, strict=True)
        ]

    def replies(self, exchanges: Sequence[Exchange], *, seed: int) -> list[str]:
        """What the model writes for each; empty where it wrote no whole sentence."""
        prompts = [self.prompt.tokens(self.prompt.text(exchange)) for exchange in exchanges]
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        found: dict[int, str] = {}
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            seeds = [row_seed(exchanges[i], seed) for i in batch]
            replies = self._generate([prompts[i] for i in batch], seeds)
            found |= dict(zip(batch, replies, strict=True))
        return [found[i] for i in range(len(exchanges))]

    @torch.inference_mode()
    def _generate(self, prompts: list[list[int]], seeds: list[int]) -> list[str]:
        inputs = self.tokenizer.pad({"input_ids": prompts}, return_tensors="pt")
        inputs = inputs.to(self.model.device)
        output = self.model.generate(
            **inputs,
            max_new_tokens=self.max_new_tokens,
            do_sample=False,
            eos_token_id=self.end_tokens,
            logits_processor=[RowSampler(seeds, self.max_new_tokens, self.temperature, self.top_p)],
        )
        new = output[:, inputs["input_ids"].shape[1] :]
        texts = self.tokenizer.batch_decode(new, skip_special_tokens=True)
        return [clean_reply(text) for text in texts]


def row_seed(exchange: Exchange, seed: int) -> int:
    """A seed for one pair of posts, the same wherever in a file or batch it stands."""
    return derive_seed(seed, exchange.seeker_post, exchange.response_post)
