"""A chat model that edits a reply sentence by sentence, in words: PARTNER's actions for any LLM.

`train.py grpo --actions edits` trains one; its folder is a policy like every other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from policies.chat.answers import ChatModel
from policies.chat.edit_prompt import EditPrompt
from policies.chat.grammar import rewrite_of
from policies.chat.rewriter import EDITOR, read_rewriter
from policies.chat.template import end_tokens_of
from rewriting import Exchange, Rewrite


class ChatEditor:
    """Asks for edits in the grammar and applies them; what cannot be read keeps the reply.

    options: those of ChatModel.
    """

    def __init__(
        self,
        model_name: str = "smollm2-135m",
        *,
        max_prompt_tokens: int = 768,
        name: str = "editor",
        **options: Any,
    ) -> None:
        self.name = name
        self.chat = ChatModel(model_name, **options)
        self.prompt = EditPrompt(self.chat.tokenizer, max_prompt_tokens)

    @classmethod
    def load(cls, folder: Path, *, name: str = "") -> ChatEditor:
        """The editor in a folder that `train.py grpo --actions edits` wrote."""
        settings = read_rewriter(folder, EDITOR)
        options = settings.options()
        return cls(settings.model, adapter=folder, name=name or str(folder), **options)

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        answers = self.answers(exchanges, seed=seed)
        return [
            rewrite_of(exchange, answer)[0]
            for exchange, answer in zip(exchanges, answers, strict=True)
        ]

    def answers(self, exchanges: Sequence[Exchange], *, seed: int) -> list[str]:
        """The raw answers of the model, before they are parsed."""
        ends = end_tokens_of(self.chat.model, self.chat.tokenizer)
        return self.chat.answers(self.prompt, exchanges, ends, seed=seed)
