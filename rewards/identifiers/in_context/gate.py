"""Does this post call for empathy, and are these words for this post? Two numbers beside a level.

Identifiers read the form of a sentence: "I know how you feel." is called empathic in a chat about
gardening (Lee et al. 2023), and a reply moved to a stranger's post keeps its level. The gate sees
only what they leave out, with one frozen sentence encoder and some thousand fitted numbers:

    need    a linear rule on the embedded post, its words and pairs of words: is there trouble?
    fit     the centred similarity of post and text, (p − p̄)·(t − t̄): what the two share beyond
            what any post shares with any reply. A text that suits everybody gets about 0.

The fit is taken twice, of the whole reply and of the sentences that carry the mechanism, and both
must be there: kind words have to be about this post themselves, not only the advice around them.

Legend: N rows, M mechanisms, T texts, D width of an embedding, V known terms, F = 3 features (need,
fit of the reply, fit of the words).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from rewriting.data.appraisals import sentence_bounds
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import load_tensors, save_tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rewards.identifiers.seed_sentences import SentenceVectors

SETTINGS, WEIGHTS = "context.json", "context.safetensors"
WORD: Final = re.compile(r"[a-z']+")


def words_of(text: str) -> list[str]:
    """The words of a text, each once."""
    return list(dict.fromkeys(WORD.findall(text.lower().replace("’", "'"))))


def pairs_of(text: str) -> list[str]:
    """The neighbouring words of a text, each pair once; the first word has a mark for neighbour."""
    words = ["^", *WORD.findall(text.lower().replace("’", "'"))]
    return list(dict.fromkeys(f"{first} {second}" for first, second in pairwise(words)))


def term_shares(text: str) -> dict[str, float]:
    """Words and pairs; within each of the two all have one share, and their squares add up to 1."""
    return {
        term: len(terms) ** -0.5 for terms in (words_of(text), pairs_of(text)) for term in terms
    }


def centred_similarity(
    posts_ND: NDArray[Any],
    texts_ND: NDArray[Any],
    mean_post_D: NDArray[Any],
    mean_text_D: NDArray[Any],
) -> NDArray[Any]:
    """[N]: the dot products after the means are taken off both sides.

    It ranks as the cosine less the mean cosine of the text to other posts and of the post to other
    texts: generic replies, close to every post, and posts that resemble every reply stand level.
    """
    product_N: NDArray[Any] = ((posts_ND - mean_post_D) * (texts_ND - mean_text_D)).sum(axis=-1)
    return product_N


def carriers(response_post: str, rationales: Sequence[str]) -> list[str]:
    """The sentences of the response that a rationale touches, in order; all of them without one."""
    bounds = sentence_bounds(response_post)
    marked = [
        (start, start + len(piece))
        for piece in rationales
        if (start := response_post.find(piece)) >= 0
    ]
    touched = [
        (start, end)
        for start, end in bounds
        if any(first < end and start < last for first, last in marked)
    ]
    return [response_post[start:end] for start, end in touched or bounds]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How far a mechanism of one reply fits its post, 0 to 1, and whether its level counts."""

    gate: float
    counts: bool


@dataclass(frozen=True, slots=True, eq=False)
class GateWeights:
    """What is fitted. The logit of need is 0 at the bar below which no level is called; those of
    fit, of the reply and of the words, are 0 where text in place is as likely as moved text. terms:
    words and pairs of words that add to the logit of need."""

    need_weights_D: NDArray[Any]
    term_weights_V: NDArray[Any]
    terms: tuple[str, ...]
    need_bias: float
    mean_post_D: NDArray[Any]
    mean_reply_D: NDArray[Any]
    fit_slopes_2: NDArray[Any]
    fit_biases_2: NDArray[Any]


class ContextGate:
    """Rows of a post, a reply and the rationales of each mechanism → a verdict per mechanism.

    vectors: embeds texts, equal ones once (`SentenceVectors`). The gate is the product of three
    probabilities: that the post calls for empathy, that the reply stands in its place, and that
    the words which carry the mechanism do.
    """

    def __init__(self, vectors: SentenceVectors, weights: GateWeights) -> None:
        self.vectors = vectors
        self.weights = weights
        self._terms = dict(zip(weights.terms, weights.term_weights_V.tolist(), strict=True))

    def __call__(self, rows: Sequence[Row]) -> list[list[Verdict]]:
        return [
            [self._verdict(features_F) for features_F in features_MF]
            for features_MF in self.features(rows)
        ]

    def _verdict(self, features_F: NDArray[Any]) -> Verdict:
        need, fits_2 = float(features_F[0]), features_F[1:]
        reply, words = fits_2 * self.weights.fit_slopes_2 + self.weights.fit_biases_2
        return Verdict(_sigmoid(need) * _sigmoid(reply) * _sigmoid(words), need > 0)

    def features(self, rows: Sequence[Row]) -> NDArray[Any]:
        """[N, M, F]. Each different text is embedded once."""
        words = [[carriers(reply, found) for found in kinds] for _, reply, kinds in rows]
        texts = [text for post, reply, _ in rows for text in (post, reply)]
        texts += [text for kinds in words for sentences in kinds for text in sentences]
        known = dict(zip(texts, self.vectors(texts), strict=True))
        return np.array(
            [
                [self._row(known, post, reply, sentences) for sentences in kinds]
                for (post, reply, _), kinds in zip(rows, words, strict=True)
            ]
        )

    def _row(
        self, known: dict[str, NDArray[Any]], post: str, reply: str, sentences: Sequence[str]
    ) -> list[float]:
        """Need, and the fits for one mechanism, whose words are these sentences."""
        weights = self.weights
        post_D = known[post].astype(np.float64)
        texts_TD = np.stack([known[text] for text in (reply, *sentences)]).astype(np.float64)
        fits_T = centred_similarity(post_D, texts_TD, weights.mean_post_D, weights.mean_reply_D)
        words_fit = fits_T[1:].mean() if sentences else fits_T[0]
        return [self.need(post, post_D), float(fits_T[0]), float(words_fit)]

    def need(self, post: str, post_D: NDArray[Any]) -> float:
        """The logit that a post calls for empathy."""
        shares = term_shares(post).items()
        by_terms = sum(self._terms.get(term, 0.0) * share for term, share in shares)
        return float(post_D @ self.weights.need_weights_D) + by_terms + self.weights.need_bias

    @classmethod
    def load(cls, folder: Path | str, *, encoder: Any = None, batch_size: int = 1) -> Self:
        """The gate that `save` has written, by folder or hub id; its encoder comes by name."""
        from rewards.identifiers.seed_sentences import SentenceVectors
        from rewriting.runtime.models.hub import found_folder
        from rewriting.runtime.models.named import load_sentence_encoder

        path = found_folder(folder, SETTINGS)
        settings = read_settings(path, checked=True)
        tensors = load_tensors(path / WEIGHTS)
        arrays: dict[str, Any] = {n: one.numpy().astype(np.float64) for n, one in tensors.items()}
        with one_line_where_unfit(path / SETTINGS):
            encoder = encoder or load_sentence_encoder(settings["encoder"])
            plain = {name: settings[name] for name in PLAIN} | {"terms": tuple(settings["terms"])}
            vectors = SentenceVectors(encoder, name=settings["encoder"], batch_size=batch_size)
            return cls(vectors, GateWeights(**arrays, **plain))

    def save(self, folder: Path, *, identifier: str) -> None:
        """Write the weights, the encoder's name, and the identifier that the gate goes with."""
        import torch

        values = asdict(self.weights)
        settings = {"identifier": identifier, "encoder": self.vectors.name}
        settings |= {name: values.pop(name) for name in PLAIN}
        tensors = {n: torch.from_numpy(np.asarray(a, np.float32)) for n, a in values.items()}
        save_tensors(tensors, folder / WEIGHTS)
        write_model_settings(folder, SETTINGS, settings, weights=WEIGHTS)


def read_settings(folder: Path | str, *, checked: bool = False) -> dict[str, Any]:
    """The settings of what `train.py context` has written, by folder or hub id.

    checked: whether the weights are compared with their checksum too.
    """
    from rewriting.runtime.models.hub import found_folder

    path = found_folder(folder, SETTINGS)
    return read_model_settings(
        path, SETTINGS, weights=WEIGHTS, called="context gate", checked=checked
    )


def encoder_name(folder: Path | str) -> str:
    """The sentence encoder whose vectors the gate in a folder reads."""
    return str(read_settings(folder)["encoder"])


PLAIN: Final = ("need_bias", "terms")
Row = tuple[str, str, Sequence[Sequence[str]]]
"""A seeker post, a response post, and the rationales of each mechanism."""


def _sigmoid(logit: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(logit, -60, 60))))
