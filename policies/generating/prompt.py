"""What a generator reads before it responds: the conversation so far, each turn with its speaker.

    Reply to the seeker with empathy.
    Seeker: I lost my job.
    Peer: Oh no. How did that happen?
    Seeker: They closed the whole office.
    Peer:

The turns before a seeker post are taken to alternate and to end with the peer. Where a conversation
does not fit, it loses its oldest tokens; the instruction and the last word stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rewriting.errors import UserError
from rewriting.exchange import Exchange

INSTRUCTION: Final = "Reply to the seeker with empathy."
SEEKER, PEER = "Seeker:", "Peer:"
Tokenize = Callable[[str], list[int]]


def plain_tokens(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text, none of them special: an end in what somebody wrote is not the end."""
    options = {"add_special_tokens": False, "split_special_tokens": True}
    found = list(tokenizer(text, **options)["input_ids"])
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    if special & set(found):  # T5's vocabulary has them as words too, whatever it is told
        for word in tokenizer.all_special_tokens:
            text = text.replace(word, f"{word[0]} {word[1:]}")
        found = list(tokenizer(text, **options)["input_ids"])
    return found


def turns(exchange: Exchange) -> list[str]:
    """The conversation, oldest turn first, each with the word for its speaker."""
    newest_first = (exchange.seeker_post, *reversed(exchange.history))
    marked = [
        f"\n{PEER if number % 2 else SEEKER} {' '.join(text.split())}"
        for number, text in enumerate(newest_first)
    ]
    return marked[::-1]


def context_tokens(
    exchange: Exchange, tokenize: Tokenize, *, max_tokens: int, start: tuple[int, ...] = ()
) -> list[int]:
    """The tokens of a context, at most `max_tokens`. start: what the model wants first."""
    before = [*start, *tokenize(INSTRUCTION)]
    after = tokenize(f"\n{PEER}")
    room = max_tokens - len(before) - len(after)
    if room < 1:
        raise UserError(
            f"max_context_tokens {max_tokens} leaves no room for a conversation: the words around "
            f"it take {len(before) + len(after)}."
        )
    said = [token for turn in turns(exchange) for token in tokenize(turn)]
    return [*before, *said[-room:], *after]
