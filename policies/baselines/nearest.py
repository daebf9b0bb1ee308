"""`nearest`: a sentence that somebody said to a person in a similar place, taken at random.

The bank of the choosing policy (policies/choosing/bank.py) without the choice: every sentence is
good English and kind, and whether one fits is left to chance. What a policy that chooses has to
beat, and with many candidates ranked by a reward, what is to be had without any training.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from policies.choosing.bank import Bank
from rewriting import Edit, Exchange, Rewrite, apply_edits, split_sentences
from rewriting.runtime.seeds import derive_seed

NEAREST: Final = 16  # sentences of the most similar posts that are tried under a post


class NearestPolicy:
    """Inserts one of the nearest sentences of the bank: in front, or at the end where it asks.

    The seed puts them in an order. Several candidates are different sentences as long as there are
    any left.
    """

    def __init__(self, bank: Bank, name: str = "nearest") -> None:
        self.name = name
        self.bank = bank

    @classmethod
    def load(cls) -> NearestPolicy:
        return cls(Bank.load())

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        return self.rewrites(exchanges, [seed])[0]

    def rewrites(self, exchanges: Sequence[Exchange], seeds: Sequence[int]) -> list[list[Rewrite]]:
        """As many candidates as there are seeds; the first seed decides on their order."""
        rows = []
        posts = [exchange.seeker_post for exchange in exchanges]
        for exchange, near in zip(exchanges, self.bank.nearest(posts, NEAREST), strict=True):
            said = [self.bank.sentences[one.number] for one in near]
            texts = (exchange.seeker_post, exchange.response_post)
            random.Random(derive_seed(seeds[0], *texts)).shuffle(said)
            rows.append([with_sentence(exchange, said[n % len(said)]) for n in range(len(seeds))])
        return [list(candidates) for candidates in zip(*rows, strict=True)]


def with_sentence(exchange: Exchange, sentence: str) -> Rewrite:
    """The reply with a sentence in front of it, or behind it where it asks."""
    asks = sentence.rstrip().endswith("?")
    place = len(split_sentences(exchange.response_post)) if asks else 0
    edit = Edit.insert(place, sentence)
    return Rewrite(exchange, apply_edits(exchange.response_post, [edit]), (edit,))
