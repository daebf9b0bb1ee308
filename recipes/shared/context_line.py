"""The line of context-sensitivity: would these rewrites be as empathic under anybody's post?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rewriting import Rewrite

if TYPE_CHECKING:
    from rewards.identifiers.assessment import Identifier


def own_post(in_context: Identifier, rewrites: Sequence[Rewrite]) -> list[float | None]:
    """For each rewrite 100 where its empathy in context is greater at its own post than at another
    seeker's, 0 where it is less, 50 where it is the same; so the mean is a percentage.

    A system that says the same to everyone comes to about 50. None where nothing can be told: a
    blank response, or no other post.
    """
    from rewards.identifiers.moved_posts import moved

    exchanges = [one.exchange for one in rewrites]
    pairs = [
        (exchange.seeker_post, other, one.rewritten_response)
        for exchange, other, one in zip(exchanges, moved(exchanges), rewrites, strict=True)
    ]
    told = [pair for pair in pairs if pair[0] != pair[1] and pair[2].strip()]
    if not told:
        return [None] * len(pairs)
    own, others, responses = zip(*told, strict=True)
    here = in_context.assess(own, responses, rationales=False)
    there = in_context.assess(others, responses, rationales=False)
    known = {
        pair: 50.0 + 50.0 * _sign(a.expected_empathy - b.expected_empathy)
        for pair, a, b in zip(told, here, there, strict=True)
    }
    return [known.get(pair) for pair in pairs]


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
