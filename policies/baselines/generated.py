"""`generated`: the language model answers the seeker post afresh, without seeing the peer's reply.

PARTNER (arXiv 2101.07714) compares itself with DialoGPT used that way: an agent that edits should
keep what the peer meant, where one that writes anew is free to say anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policies.baselines.prompted import PromptedPolicy
from policies.chat.rewrite_prompt import RewritePrompt
from rewriting import Exchange, Rewrite
from rewriting.runtime.seeds import derive_seed

INSTRUCTION = (
    "You answer people on a peer support site. Someone wrote:\n{seeker_post}\n\n"
    "Write an answer to this person, in at most four sentences."
)
OPENING = 'Here is the answer: "'
NOTHING = "…"
ATTEMPTS = 3


class GeneratedPolicy:
    """A chat model by name that answers; options are those of PromptedPolicy.

    Where it writes no whole sentence it is asked again, twice; then "…" stands: the peer's own
    reply would not be its work.
    """

    def __init__(self, model_name: str = "smollm2-135m", **options: Any) -> None:
        self.name = "generated"
        self.model = PromptedPolicy(model_name, name=self.name, **options)
        self.model.prompt = RewritePrompt(
            self.model.tokenizer,
            self.model.prompt.max_tokens,
            instruction=INSTRUCTION,
            opening=OPENING,
        )

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        replies = [""] * len(exchanges)
        for attempt in range(ATTEMPTS):
            left = [place for place, reply in enumerate(replies) if not reply]
            again = derive_seed(seed, "again", attempt) if attempt else seed
            asked = [exchanges[place] for place in left]
            for place, reply in zip(left, self.model.replies(asked, seed=again), strict=True):
                replies[place] = reply
        pairs = zip(exchanges, replies, strict=True)
        return [Rewrite(exchange, reply or NOTHING) for exchange, reply in pairs]
