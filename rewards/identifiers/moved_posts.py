"""Replies moved to another seeker's post: what an audit and the gate of context compare with."""

from __future__ import annotations

from collections.abc import Sequence

from rewriting.exchange import Exchange


def moved(exchanges: Sequence[Exchange]) -> list[str]:
    """For each exchange the seeker post of another, half the list away: nobody keeps their own.

    Exchanges are sorted by seeker first, so that replies to one post are not swapped among
    themselves; where one post has most of the replies, some may still keep it.
    """
    order = sorted(range(len(exchanges)), key=lambda i: (exchanges[i].seeker_post, i))
    half = len(order) // 2
    posts = [""] * len(exchanges)
    for place, row in enumerate(order):
        posts[row] = exchanges[order[(place + half) % len(order)]].seeker_post
    return posts
