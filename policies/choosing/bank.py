"""The sentences that can be lent: what kind people said to somebody in a similar place.

They were written to be lent (rewriting/sample/BANK.md), each under a post that it fits. Under a new
post the sentences of the most similar posts are looked up. All of them are good English and kind,
and the only question is whether one fits: that is for others to say.

Left out: the sentences of the fits and of the sense corpus. They are kind and general too, but say
so precisely what is special about one situation that under another post they are nearly always
wrong.

Legend: N posts that are asked about, M posts of the bank, D width of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from rewriting.data.lent import lent_rows
from rewriting.data.split import normalised
from rewriting.runtime.cache import ScoreCache

ENCODER: Final = "minilm-l6"


@dataclass(frozen=True, slots=True)
class Fitting:
    """A post and a sentence that fits it."""

    post: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Near:
    """A sentence of the bank, by its number, and how similar the post is that it was said to."""

    number: int
    cosine: float


def fitting_sentences() -> Iterator[Fitting]:
    """The bundled sentences, each with the post that it was said to."""
    for row in lent_rows():
        for sentence in row["sentences"]:
            yield Fitting(row["seeker_post"], sentence["text"])


class Bank:
    """Sentences by number, and those of the posts most similar to a given one.

    A sentence that was said to the very post is left out: it would tell a policy in training what
    it can never know in use.
    """

    def __init__(self, encoder: Any, rows: Sequence[Fitting]) -> None:
        self.encoder = encoder
        self.sentences = list(dict.fromkeys(row.sentence for row in rows))
        numbers = {sentence: number for number, sentence in enumerate(self.sentences)}
        said: dict[str, list[int]] = {}
        for row in rows:
            said.setdefault(row.post, []).append(numbers[row.sentence])
        self._posts, self._said = list(said), list(said.values())
        self._vectors: ScoreCache[str, Any] = ScoreCache(self._encode)

    @classmethod
    def load(cls) -> Bank:
        """Everything that is bundled, on the shipped encoder."""
        from rewriting.runtime.models.named import load_sentence_encoder

        return cls(load_sentence_encoder(ENCODER), list(fitting_sentences()))

    def nearest(self, posts: Sequence[str], count: int) -> list[list[Near]]:
        """For each post so many sentences of the posts most similar to it, the nearest first."""
        own_ND = np.stack(self._vectors(posts)) if posts else np.zeros((0, 1))
        return [
            self._nearest(normalised(post), own_D @ self._bank_vectors.T, count)
            for post, own_D in zip(posts, own_ND, strict=True)
        ]

    def _nearest(self, post: str, cosines_M: Any, count: int) -> list[Near]:
        found: dict[int, Near] = {}
        for place in np.argsort(-cosines_M, kind="stable"):
            if normalised(self._posts[place]) == post:
                continue
            for number in self._said[place]:
                found.setdefault(number, Near(number, float(cosines_M[place])))
            if len(found) >= count:
                break
        return list(found.values())[:count]

    @cached_property
    def _bank_vectors(self) -> Any:
        """[M, D]"""
        return np.stack(self._encode(self._posts))

    def _encode(self, texts: Sequence[str]) -> list[Any]:
        """Unit vectors."""
        found = self.encoder.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return list(found)
