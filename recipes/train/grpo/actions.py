"""What a chat model is trained to do to a reply: rewrite it as a whole, or edit it in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rewriting.exchange import Exchange, Rewrite

REWRITES: Final = "rewrites"
EDITS: Final = "edits"
ACTIONS: Final = (REWRITES, EDITS)


@dataclass(frozen=True, slots=True)
class Actions:
    """How the model is asked, where its answer ends, and what its answer means.

    kind: of the policy that is saved. read: the rewrite that an answer comes to, and what is wrong
    with the answer, if anything is. tells_sentence: whether the new sentences are known, so that
    rewards get them in the column `sentence`.
    """

    kind: str
    prompt: Callable[[Any, int], Any]
    end_tokens: Callable[[Any, Any], list[int]]
    read: Callable[[Exchange, str], tuple[Rewrite, str]]
    tells_sentence: bool


def load_actions(name: str) -> Actions:
    """The actions of that name, which the config has checked."""
    from policies.chat import edit_prompt, grammar, rewrite_prompt, rewriter, template

    if name == EDITS:
        return Actions(
            rewriter.EDITOR,
            edit_prompt.EditPrompt,
            template.end_tokens_of,
            grammar.rewrite_of,
            tells_sentence=True,
        )
    return Actions(
        rewriter.REWRITER,
        rewrite_prompt.RewritePrompt,
        lambda model, tokenizer: rewrite_prompt.end_tokens(tokenizer),
        whole_rewrite,
        tells_sentence=False,
    )


def whole_rewrite(exchange: Exchange, answer: str) -> tuple[Rewrite, str]:
    """What the rewriter would hand out: the cleaned reply, or else the original."""
    from policies.chat.rewrite_prompt import clean_reply

    return Rewrite(exchange, clean_reply(answer) or exchange.response_post), ""
