"""Seed sentences: what makes a micromodel, and how near a response comes to them.

Legend: N responses, T sentences of one, S seeds, F = 3 features, D width of a sentence embedding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rewards.identifiers.rationales import normalise
from rewriting.data.split import normalised
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.runtime.cache import CACHE_SIZE, BatchedScores
from rewriting.sentences import split_sentences

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEEDS: Final[dict[str, tuple[str, ...]]] = {
    "emotional_reactions": ("I know how you feel.", "I'm sorry.", "I feel you."),
    "interpretations": (
        "I feel the same way.",
        "I know how you feel.",
        "I understand how you feel.",
    ),
    "explorations": ("Why?", "What happened?", "Why do you feel like that?"),
}
"""The three seeds per mechanism with which the paper's micromodels nearly suffice."""


class SentenceVectors:
    """Texts to unit vectors. Equal texts are embedded once.

    encoder: anything with sentence-transformers' `encode`; it cuts a text longer than its window.
    batch_size 1 keeps a vector free of what else is in the batch down to the last bit, and the
    steps of a boosting machine feel a bit; larger ones are faster, on a GPU and for training
    (remember_all: see BatchedScores).
    """

    def __init__(
        self,
        encoder: Any,
        *,
        name: str = "",
        batch_size: int = 1,
        remember_all: bool = False,
        cache_size: int = CACHE_SIZE,
    ) -> None:
        self.encoder = encoder
        self.name = name
        self.batch_size = batch_size
        self._known: BatchedScores[str, NDArray[Any]] = BatchedScores(
            self._encode, batch_size=batch_size, remember_all=remember_all, size=cache_size
        )

    def __call__(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """A vector [D] for each text; zeros stay zeros."""
        return self._known(texts)

    def _encode(self, texts: list[str]) -> list[NDArray[Any]]:
        vectors_ND = self.encoder.encode(
            texts, batch_size=len(texts), convert_to_numpy=True, show_progress_bar=False
        )
        norms_N1 = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
        return list((vectors_ND / np.where(norms_N1 > 0, norms_N1, 1)).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seed sentences of one mechanism, and their unit vectors."""

    texts: tuple[str, ...]
    vectors_SD: NDArray[Any]

    def similarities(self, vectors: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """[T, S]: cosines. Sentence by sentence, since a product of two matrices may round a row
        otherwise when other rows stand beside it."""
        if not len(vectors):
            return np.zeros((0, len(self.texts)))
        return np.stack([self.vectors_SD @ vector for vector in vectors]).clip(-1, 1)


def seed_owners(exchanges: Sequence[Exchange], mechanism: str, seeds: str) -> dict[str, set[str]]:
    """Each different seed of a mechanism, and the responses that it was annotated in."""
    if seeds == "three":
        return {text: set() for text in SEEDS[mechanism]}
    if seeds != "rationales":
        raise UserError(f"seeds are rationales or three, not {seeds!r}.")
    owners: dict[str, set[str]] = {}
    for exchange in exchanges:
        label = exchange.labels.get(mechanism)
        for text in map(normalise, label.rationales if label else ()):
            if text:
                owners.setdefault(text, set()).add(normalised(exchange.response_post))
    if not owners:
        raise UserError(f"no rationale of {mechanism} is annotated: use the seeds called three.")
    return owners


def training_features(
    exchanges: Sequence[Exchange],
    vectors: SentenceVectors,
    seeds: Mapping[str, Seeds],
    owners: Mapping[str, Mapping[str, set[str]]] | None,
) -> NDArray[Any]:
    """[N, F]: the features of the exchanges' responses, without the seeds that are a response's own
    and nobody else's. With no owners every seed counts; where no seed is left, the feature is 0."""
    texts = [split_sentences(exchange.response_post).texts for exchange in exchanges]
    found = iter(vectors([text for sentences in texts for text in sentences]))
    features_NF = np.zeros((len(exchanges), len(MECHANISMS)))
    for row, (exchange, sentences) in enumerate(zip(exchanges, texts, strict=True)):
        own_vectors = list(islice(found, len(sentences)))
        for column, mechanism in enumerate(MECHANISMS):
            similarity_TS = seeds[mechanism].similarities(own_vectors)
            if owners is not None:
                own = {normalised(exchange.response_post)}
                kept_S = [responses != own for responses in owners[mechanism].values()]
                similarity_TS = similarity_TS[:, kept_S]
            if similarity_TS.size:
                features_NF[row, column] = similarity_TS.max()
    return features_NF
