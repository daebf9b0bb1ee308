"""How a chat model is asked to edit a reply: the post, the numbered sentences, the grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policies.chat.template import asked, fitted, tokens_of
from rewriting import Exchange, split_sentences

INSTRUCTION = (
    "You help people on a peer support site. Someone wrote:\n{seeker_post}\n\n"
    "A peer wants to answer with these sentences:\n{sentences}\n\n"
    "Edit the answer so that it is warm and shows that the peer understands how the person feels. "
    "Keep what is good. Write one line for each edit:\n"
    "INSERT 1: a new sentence before sentence 1 (INSERT {last}: after the last)\n"
    "REPLACE 1: a new sentence in place of sentence 1\n"
    "KEEP if nothing has to change"
)
NOTHING = "(nothing yet)"


class EditPrompt:
    """The request for edits, through the model's own chat template.

    It has at most about `max_tokens`: of a long reply the first sentences are shown, in half of
    them, and the seeker's post loses its beginning.
    """

    def __init__(self, tokenizer: Any, max_tokens: int = 768) -> None:
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens

    def text(self, exchange: Exchange) -> str:
        lines = self._shown(split_sentences(exchange.response_post).texts)

        def filled(seeker_post: str) -> str:
            content = INSTRUCTION.format(
                seeker_post=seeker_post,
                sentences="\n".join(lines) or NOTHING,
                last=len(lines) + 1,
            )
            return asked(self.tokenizer, content)

        return fitted(self.tokenizer, exchange.seeker_post, self.max_tokens, filled)

    def tokens(self, text: str) -> list[int]:
        return tokens_of(self.tokenizer, text)

    def _shown(self, sentences: Sequence[str]) -> list[str]:
        """The numbered sentences that fit; the first one in any case, cut if it has to be."""
        lines: list[str] = []
        room = self.max_tokens // 2
        for number, sentence in enumerate(sentences, start=1):
            tokens = self.tokens(f"{number}. {' '.join(sentence.split())}")
            if lines and len(tokens) > room:
                break
            lines.append(self.tokenizer.decode(tokens[: max(room, 1)]).strip())
            room -= len(tokens)
        return lines
