"""`bank`: sentences that people wrote for posts like this one.

The fits and the sense corpus hold some 2,600 kind sentences that say what somebody is going
through without naming details (rewriting/sample/FITS.md, SENSE.md), each under the posts that it
fits. Under a new post the sentences of the most similar posts are tried: every one of them is good
English and kind, and the only question is whether it fits. Ranked by a reward that reads post and
sentence together, it is what a generating agent has to beat: it invents nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from rewriting import Edit, Exchange, Rewrite, apply_edits, split_sentences
from rewriting.data.fits import STRONG, fit_groups
from rewriting.data.load import load_exchanges
from rewriting.runtime.seeds import derive_seed

ENCODER: Final = "minilm-l6"
NEAREST: Final = 16  # sentences of the most similar posts that are tried under a post
GENERAL: Final = "general_fit"


@dataclass(frozen=True, slots=True)
class Fitting:
    """A post and a sentence that fits it."""

    post: str
    sentence: str


def fitting_sentences() -> Iterator[Fitting]:
    """The strong sentences of the fits and the general ones of the sense corpus, train parts."""
    for group in fit_groups("train"):
        for row in group["sentences"]:
            if row["level"] == STRONG:
                for post, fits in zip(group["posts"], row["fits"], strict=True):
                    if fits:
                        yield Fitting(post, row["text"])
    for exchange in load_exchanges("sample:sense_train"):
        for row in exchange.extra["sentences"]:
            if row["kind"] == GENERAL:
                yield Fitting(exchange.seeker_post, row["text"])


class BankPolicy:
    """Inserts one of the nearest sentences of the bank: in front, or at the end where it asks.

    The seed puts them in an order. Several candidates are different sentences as long as there are
    any left.
    """

    def __init__(self, encoder: Any, name: str = "bank") -> None:
        self.name = name
        self.encoder = encoder
        self.bank = list(fitting_sentences())

    @classmethod
    def load(cls) -> BankPolicy:
        from rewriting.runtime.models.named import load_sentence_encoder

        return cls(load_sentence_encoder(ENCODER))

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        return self.rewrites(exchanges, [seed])[0]

    def rewrites(self, exchanges: Sequence[Exchange], seeds: Sequence[int]) -> list[list[Rewrite]]:
        """As many candidates as there are seeds; the first seed decides on their order."""
        rows = []
        for exchange, near in zip(exchanges, self.nearest(exchanges), strict=True):
            texts = (exchange.seeker_post, exchange.response_post)
            random.Random(derive_seed(seeds[0], *texts)).shuffle(near)
            rows.append([with_sentence(exchange, near[n % len(near)]) for n in range(len(seeds))])
        return [list(candidates) for candidates in zip(*rows, strict=True)]

    def nearest(self, exchanges: Sequence[Exchange]) -> list[list[str]]:
        """For each exchange the sentences of the posts most like its own, the nearest first."""
        own_ND = self._vectors([exchange.seeker_post for exchange in exchanges])
        found = []
        for cosines_M in own_ND @ self._bank_vectors.T:
            order = np.argsort(-cosines_M)
            sentences = dict.fromkeys(self.bank[place].sentence for place in order[: 8 * NEAREST])
            found.append(list(sentences)[:NEAREST])
        return found

    @cached_property
    def _bank_vectors(self) -> Any:
        posts = list(dict.fromkeys(one.post for one in self.bank))
        rows = dict(zip(posts, self._vectors(posts), strict=True))
        return np.stack([rows[one.post] for one in self.bank])

    def _vectors(self, texts: Sequence[str]) -> Any:
        """[N, D], unit vectors."""
        return self.encoder.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)


def with_sentence(exchange: Exchange, sentence: str) -> Rewrite:
    """The reply with a sentence in front of it, or behind it where it asks."""
    asks = sentence.rstrip().endswith("?")
    place = len(split_sentences(exchange.response_post)) if asks else 0
    edit = Edit.insert(place, sentence)
    return Rewrite(exchange, apply_edits(exchange.response_post, [edit]), (edit,))
