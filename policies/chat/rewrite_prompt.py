"""How a chat model is asked to rewrite a reply, and how its answer is read.

Shared by `prompted`, which asks the model as it is, and by the rewriters that `train.py grpo`
trains: what was trained and what is used are the same request.
"""

from __future__ import annotations

from typing import Any

from policies.chat.template import asked, fitted, tokens_of
from rewriting import Exchange, split_sentences
from rewriting.sentences import STOPS

INSTRUCTION = (
    "You help people on a peer support site. Someone wrote:\n{seeker_post}\n\n"
    "A peer wants to answer:\n{response_post}\n\n"
    "Rewrite the peer's answer. Keep what it says, make it warmer, and show that the peer "
    "understands how the person feels. Write at most four sentences."
)
# The model goes on from here, so its reply ends where the quotation does.
OPENING = 'Here is the warmer answer: "'
ENDINGS = ('"', "\n", "”")


class RewritePrompt:
    """The request for a rewrite, through the model's own chat template.

    instruction: with a place for seeker_post, and one for response_post if the model is to see it.
    opening: how its answer begins.
    """

    def __init__(
        self,
        tokenizer: Any,
        max_tokens: int = 768,
        *,
        instruction: str = INSTRUCTION,
        opening: str = OPENING,
    ) -> None:
        self.tokenizer = tokenizer
        self.max_tokens = max_tokens
        self.instruction = instruction
        self.opening = opening

    def text(self, exchange: Exchange) -> str:
        """The request. Of posts that are too long, the seeker's loses its beginning."""
        response = self.tokens(exchange.response_post)[: self.max_tokens // 2]
        response_post = self.tokenizer.decode(response)

        def filled(seeker_post: str) -> str:
            content = self.instruction.format(seeker_post=seeker_post, response_post=response_post)
            return asked(self.tokenizer, content) + self.opening

        return fitted(self.tokenizer, exchange.seeker_post, self.max_tokens, filled)

    def tokens(self, text: str) -> list[int]:
        return tokens_of(self.tokenizer, text)


def clean_reply(text: str) -> str:
    """What stands before the closing quotation mark, in whole sentences.

    Empty where there is none: a salutation alone, or a sentence cut off by the limit of tokens.
    """
    ends = [text.index(ending) for ending in ENDINGS if ending in text]
    sentences = split_sentences(text[: min(ends)].strip() if ends else text.strip())
    whole = [sentence[-1] in STOPS for sentence in sentences.texts]
    if not any(whole):
        return ""
    last = sentences.texts[-1]
    return str(sentences) if whole[-1] or ends else str(sentences)[: -len(last)].strip()


def end_tokens(tokenizer: Any) -> list[int]:
    """Every token that ends the reply: the end token, and those that hold a quotation mark."""
    tokens = tokenizer.batch_decode([[i] for i in range(len(tokenizer))])
    found = [i for i, text in enumerate(tokens) if any(ending in text for ending in ENDINGS)]
    return [tokenizer.eos_token_id, *found]
