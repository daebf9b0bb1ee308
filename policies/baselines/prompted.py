"""A causal chat model that rewrites the whole reply when it is asked to.

`prompted` is the model as it is, a baseline. A rewriter (policies/chat/rewriter.py) is the same
with an adapter that `train.py grpo` trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policies.chat.answers import ChatModel
from policies.chat.rewrite_prompt import RewritePrompt, clean_reply, end_tokens
from policies.chat.rewriter import read_rewriter
from rewriting import Exchange, Rewrite


class PromptedPolicy:
    """Rewrites whole responses with a chat model by name, through its own chat template.

    options: those of ChatModel, such as the folder of an adapter.
    """

    def __init__(
        self,
        model_name: str = "smollm2-135m",
        *,
        max_prompt_tokens: int = 768,
        name: str = "prompted",
        **options: Any,
    ) -> None:
        self.name = name
        self.chat = ChatModel(model_name, **options)
        self.tokenizer = self.chat.tokenizer
        self.prompt = RewritePrompt(self.tokenizer, max_prompt_tokens)
        self.end_tokens = end_tokens(self.tokenizer)

    @classmethod
    def load(cls, folder: Path, *, name: str = "") -> PromptedPolicy:
        """The rewriter in a folder that `train.py grpo` wrote."""
        settings = read_rewriter(folder)
        options = settings.options()
        return cls(settings.model, adapter=folder, name=name or str(folder), **options)

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        replies = self.replies(exchanges, seed=seed)
        return [
            Rewrite(exchange, reply or exchange.response_post)
            for exchange, reply in zip(exchanges, replies, strict=True)
        ]

    def replies(self, exchanges: Sequence[Exchange], *, seed: int) -> list[str]:
        """What the model writes for each; empty where it wrote no whole sentence."""
        answers = self.chat.answers(self.prompt, exchanges, self.end_tokens, seed=seed)
        return [clean_reply(answer) for answer in answers]
