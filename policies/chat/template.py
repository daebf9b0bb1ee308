"""What every request to a chat model shares: its chat template, and a post that has to fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def tokens_of(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def asked(tokenizer: Any, content: str) -> str:
    """A request through the model's own chat template, up to where its answer begins.

    Models that can think before they answer (Qwen3) are told not to; other templates do not look.
    """
    text: str = tokenizer.apply_chat_template(
        [{"role": "user", "content": content}],
        tokenize=False,
        add_generation_prompt=True,
        enable_thinking=False,
    )
    return text


def fitted(tokenizer: Any, seeker_post: str, max_tokens: int, filled: Callable[[str], str]) -> str:
    """The request with the seeker's post in it. A post that is too long loses its beginning."""
    seeker = tokens_of(tokenizer, seeker_post)
    room = max(0, max_tokens - len(tokens_of(tokenizer, filled(""))))
    return filled(tokenizer.decode(seeker[max(0, len(seeker) - room) :]))


def end_tokens_of(model: Any, tokenizer: Any) -> list[int]:
    """Every token that ends an answer: the tokenizer's, and those that the model declares."""
    declared = model.generation_config.eos_token_id
    declared = [declared] if isinstance(declared, int) else list(declared or [])
    return list(dict.fromkeys([tokenizer.eos_token_id, *declared]))
