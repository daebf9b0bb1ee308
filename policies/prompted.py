"""`prompted`: a causal chat model, asked zero-shot to rewrite the reply. A baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from policies.sampling import RowSampler
from rewriting import Exchange, Rewrite, split_sentences
from rewriting.runtime.models import load_causal
from rewriting.runtime.seeds import derive_seed

INSTRUCTION = (
    "You help people on a peer support site. Someone wrote:\n{seeker_post}\n\n"
    "A peer wants to answer:\n{response_post}\n\n"
    "Rewrite the peer's answer. Keep what it says, make it warmer, and show that the peer "
    "understands how the person feels. Write at most four sentences."
)
# The model goes on from here, so its reply ends where the quotation does.
OPENING = 'Here is the warmer answer: "'
ENDINGS = ('"', "\n", "”")


class PromptedPolicy:
    """Rewrites whole responses with a chat model by name, through its own chat template.

    A row's sample depends on the seed and the row alone (sampling.py). Rows are batched by length.
    """

    def __init__(
        self,
        model_name: str = "smollm2-135m",
        *,
        batch_size: int = 16,
        max_new_tokens: int = 72,
        max_prompt_tokens: int = 768,
        temperature: float = 0.5,
        top_p: float = 0.9,
        name: str = "prompted",
    ) -> None:
        self.name = name
        self.model, self.tokenizer = load_causal(model_name)
        self.batch_size = batch_size
        self.max_new_tokens = max_new_tokens
        self.max_prompt_tokens = max_prompt_tokens
        self.temperature = temperature
        self.top_p = top_p
        self.end_tokens = _end_tokens(self.tokenizer)

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        prompts = [self._prompt(exchange) for exchange in exchanges]
        order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
        rewrites: dict[int, Rewrite] = {}
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            seeds = [row_seed(exchanges[i], seed) for i in batch]
            replies = self._generate([prompts[i] for i in batch], seeds)
            for i, reply in zip(batch, replies, strict=True):
                rewrites[i] = Rewrite(exchanges[i], reply or exchanges[i].response_post)
        return [rewrites[i] for i in range(len(exchanges))]

    def _prompt(self, exchange: Exchange) -> list[int]:
        """The request as tokens. Of posts that are too long, the seeker's loses its beginning."""
        seeker = self._tokens(exchange.seeker_post)
        response = self._tokens(exchange.response_post)[: self.max_prompt_tokens // 2]
        frame = len(self._filled("", self.tokenizer.decode(response)))
        room = max(0, self.max_prompt_tokens - frame)
        kept = seeker[max(0, len(seeker) - room) :]
        posts = (self.tokenizer.decode(kept), self.tokenizer.decode(response))
        return self._filled(*posts)

    def _filled(self, seeker_post: str, response_post: str) -> list[int]:
        content = INSTRUCTION.format(seeker_post=seeker_post, response_post=response_post)
        text = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True
        )
        return self._tokens(text + OPENING)

    def _tokens(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    @torch.inference_mode()
    def _generate(self, prompts: list[list[int]], seeds: list[int]) -> list[str]:
        inputs = self.tokenizer.pad({"input_ids": prompts}, return_tensors="pt")
        inputs = inputs.to(self.model.device)
        output = self.model.generate(
            **inputs,
            max_new_tokens=self.max_new_tokens,
            do_sample=False,
            eos_token_id=self.end_tokens,
            logits_processor=[RowSampler(seeds, self.temperature, self.top_p)],
        )
        new = output[:, inputs["input_ids"].shape[1] :]
        texts = self.tokenizer.batch_decode(new, skip_special_tokens=True)
        return [clean_reply(text) for text in texts]


def row_seed(exchange: Exchange, seed: int) -> int:
    """A seed for one pair of posts, the same wherever in a file or batch it stands."""
    return derive_seed(seed, exchange.seeker_post, exchange.response_post)


def clean_reply(text: str) -> str:
    """What stands before the closing quotation mark, in whole sentences.

    Empty where there is none: a salutation alone, or a sentence cut off by the limit of tokens.
    """
    ends = [text.index(ending) for ending in ENDINGS if ending in text]
    sentences = split_sentences(text[: min(ends)].strip() if ends else text.strip())
    whole = [sentence[-1] in ".!?…" for sentence in sentences.texts]
    if not any(whole):
        return ""
    last = sentences.texts[-1]
    return str(sentences) if whole[-1] or ends else str(sentences)[: -len(last)].strip()


def _end_tokens(tokenizer: Any) -> list[int]:
    """Every token that ends the reply: the end token, and those that hold a quotation mark."""
    tokens = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
    found = [i for i, text in enumerate(tokens) if any(ending in text for ending in ENDINGS)]
    return [tokenizer.eos_token_id, *found]
