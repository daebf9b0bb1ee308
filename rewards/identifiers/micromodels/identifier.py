"""Micromodels: how near does a response come to sentences that were found empathic before?

    identifier = Micromodels.load("runs/micromodels/model")
    (assessment,) = identifier.assess(["I failed again."], ["I'm so sorry. What happened?"])

Lee, Kummerfeld, An and Mihalcea (2023). Each mechanism has a micromodel: seed sentences, the
annotated rationales of the training rows. Its feature of a response is the largest cosine
similarity between any sentence of the response and any seed. An explainable boosting machine on
the three features gives each mechanism's level; the sentences near a seed are its rationales.
The seeker post is never looked at, so a kind sentence in the wrong place counts like any other.

Legend: N responses, T sentences of one, S seeds, F = 3 features, D width of a sentence embedding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from rewards.identifiers.assessment import Assessment, Judgement
from rewards.identifiers.micromodels.boosting import AdditiveModel, fit_additive
from rewards.identifiers.seed_sentences import (
    Seeds,
    SentenceVectors,
    seed_owners,
    training_features,
)
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import load_tensors, save_tensors
from rewriting.sentences import split_sentences

if TYPE_CHECKING:
    from numpy.typing import NDArray

SETTINGS, WEIGHTS = "micromodels.json", "micromodels.safetensors"
THRESHOLD: Final = 0.7
"""The paper's θ: a sentence nearer to a seed than this is a rationale."""
POSTS_AT_ONCE: Final = 512  # bounds the memory of embedded sentences


@dataclass(frozen=True, slots=True)
class Reading:
    """The sentences of a response, and for each mechanism the seed nearest to each sentence."""

    sentences: tuple[str, ...]
    similarity_FT: NDArray[Any]
    seed_FT: NDArray[Any]

    @property
    def features_F(self) -> NDArray[Any]:
        """The largest similarity of each mechanism; 0 for a response without a sentence."""
        return self.similarity_FT.max(axis=1) if self.sentences else np.zeros(len(MECHANISMS))


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a mechanism got its level.

    sentence, seed, similarity: the pair that makes this mechanism's feature; blank texts where the
    response has no sentence. contributions: what each mechanism's feature adds to the logit of the
    level, against the mean of the levels; together with the intercept they are that logit.
    """

    level: int
    probabilities: tuple[float, float, float]
    sentence: str
    seed: str
    similarity: float
    contributions: Mapping[str, float]
    intercept: float


class Micromodels:
    """Assesses responses by their nearest seeds.

    thresholds: how near a sentence must come to count as a rationale, per mechanism. offsets: what
    is added to the log-probabilities of the levels 0, 1, 2 before the largest is called; zeros call
    the most likely level, as the paper does.
    """

    def __init__(
        self,
        vectors: SentenceVectors,
        seeds: Mapping[str, Seeds],
        models: Mapping[str, AdditiveModel],
        *,
        thresholds: Mapping[str, float] | None = None,
        offsets: Mapping[str, Sequence[float]] | None = None,
        name: str = "micromodels",
    ) -> None:
        self.vectors = vectors
        self.seeds = dict(seeds)
        self.models = dict(models)
        self.thresholds = dict.fromkeys(MECHANISMS, THRESHOLD) | dict(thresholds or {})
        self.offsets = {m: tuple((offsets or {}).get(m, (0.0, 0.0, 0.0))) for m in MECHANISMS}
        self.name = name

    @classmethod
    def fit(
        cls,
        exchanges: Sequence[Exchange],
        vectors: SentenceVectors,
        *,
        seeds: str = "rationales",
        leave_one_out: bool = True,
        seed: int = 0,
    ) -> Self:
        """Take the seeds of labelled exchanges and fit a boosting machine per mechanism.

        seeds: `rationales`, all that are annotated, or `three`, the paper's own for each mechanism.
        leave_one_out: a response's own rationales do not count for its own features. They are
        sentences of it, so its features would be near 1 whenever it was labelled as empathic, and
        the machine would learn to expect that of new responses. False shows what that costs.
        """
        owners = {m: seed_owners(exchanges, m, seeds) for m in MECHANISMS}
        found = {m: Seeds(tuple(o), np.stack(vectors(list(o)))) for m, o in owners.items()}
        features_NF = training_features(
            exchanges, vectors, found, owners if leave_one_out else None
        )
        models = {}
        for mechanism in MECHANISMS:
            rows = [row for row, exchange in enumerate(exchanges) if mechanism in exchange.labels]
            levels = [exchanges[row].labels[mechanism].level for row in rows]
            if not rows:
                raise UserError(f"no exchange is labelled for {mechanism}: nothing to learn from.")
            models[mechanism] = fit_additive(features_NF[rows], levels, seed=seed)
        return cls(vectors, found, models)

    @classmethod
    def load(cls, folder: Path | str, *, encoder: Any = None, batch_size: int = 1) -> Self:
        """Load what `save` has written, by folder or hub id; its encoder comes by name unless
        given."""
        from rewriting.runtime.models.hub import found_folder
        from rewriting.runtime.models.named import load_sentence_encoder

        path = found_folder(folder, SETTINGS)
        settings = read_model_settings(path, SETTINGS, weights=WEIGHTS, called="micromodels")
        weights = {name: one.numpy() for name, one in load_tensors(path / WEIGHTS).items()}
        with one_line_where_unfit(path / SETTINGS):
            name = settings["encoder"]
            return cls(
                SentenceVectors(
                    encoder or load_sentence_encoder(name), name=name, batch_size=batch_size
                ),
                {m: Seeds(tuple(settings["seeds"][m]), weights[m]) for m in MECHANISMS},
                {m: AdditiveModel.from_row(settings["models"][m]) for m in MECHANISMS},
                thresholds=settings["thresholds"],
                offsets=settings["offsets"],
                name=path.name,
            )

    def save(self, folder: Path | str) -> None:
        """Write seeds, their vectors and the tables of the machines; the encoder by name only."""
        import torch

        path = Path(folder)
        settings = {
            "encoder": self.vectors.name,
            "thresholds": self.thresholds,
            "offsets": {m: list(offsets) for m, offsets in self.offsets.items()},
            "seeds": {m: list(seeds.texts) for m, seeds in self.seeds.items()},
            "models": {m: model.row() for m, model in self.models.items()},
        }
        vectors = {m: torch.from_numpy(seeds.vectors_SD) for m, seeds in self.seeds.items()}
        save_tensors(vectors, path / WEIGHTS)
        write_model_settings(path, SETTINGS, settings, weights=WEIGHTS)

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]:
        """Assess responses. The seeker posts are taken, as of every identifier, and not read."""
        posts = (post for _, post in zip(seeker_posts, response_posts, strict=True))
        found: list[Assessment] = []
        while some := list(islice(posts, POSTS_AT_ONCE)):
            for reading in self.read(some):
                found.append(
                    Assessment({m: self._judge(m, reading, rationales) for m in MECHANISMS})
                )
        return found

    def explain(self, response_post: str) -> dict[str, Explanation]:
        """For each mechanism which sentence met which seed, and how the level came about."""
        (reading,) = self.read([response_post])
        return {mechanism: self._explain(mechanism, reading) for mechanism in MECHANISMS}

    def read(self, response_posts: Sequence[str]) -> list[Reading]:
        """Find the nearest seeds of every sentence; all new sentences are embedded together."""
        texts = [split_sentences(post).texts for post in response_posts]
        vectors = iter(self.vectors([text for sentences in texts for text in sentences]))
        return [
            self._reading(sentences, list(islice(vectors, len(sentences)))) for sentences in texts
        ]

    def _reading(self, sentences: tuple[str, ...], vectors: Sequence[NDArray[Any]]) -> Reading:
        tables = [self.seeds[mechanism].similarities(vectors) for mechanism in MECHANISMS]
        best = np.stack([table_TS.max(axis=1) for table_TS in tables])
        return Reading(sentences, best, np.stack([table_TS.argmax(axis=1) for table_TS in tables]))

    def probabilities(self, mechanism: str, readings: Sequence[Reading]) -> NDArray[np.float64]:
        """[N, 3]: of the levels 0, 1 and 2."""
        features_NF = np.stack([reading.features_F for reading in readings])
        return self.models[mechanism].probabilities(features_NF)

    def _judge(self, mechanism: str, reading: Reading, rationales: bool = True) -> Judgement:
        probabilities_3 = self.probabilities(mechanism, [reading])[0]
        with np.errstate(divide="ignore"):  # a level that never occurred: log 0 is right
            level = int((np.log(probabilities_3) + self.offsets[mechanism]).argmax())
        near_T = reading.similarity_FT[MECHANISMS.index(mechanism)] > self.thresholds[mechanism]
        pieces = [s for s, near in zip(reading.sentences, near_T, strict=True) if near]
        none, weak, strong = (float(p) for p in probabilities_3)
        return Judgement(level, (none, weak, strong), tuple(pieces) if rationales and level else ())

    def _explain(self, mechanism: str, reading: Reading) -> Explanation:
        judgement, model = self._judge(mechanism, reading), self.models[mechanism]
        feature, column = MECHANISMS.index(mechanism), model.levels.index(judgement.level)
        added_F = model.contributions(reading.features_F[None])[0, :, column]
        sentence = seed = ""
        if reading.sentences:
            place = int(reading.similarity_FT[feature].argmax())
            sentence = reading.sentences[place]
            seed = self.seeds[mechanism].texts[reading.seed_FT[feature, place]]
        return Explanation(
            judgement.level,
            judgement.probabilities,
            sentence,
            seed,
            float(reading.features_F[feature]),
            {m: float(added) for m, added in zip(MECHANISMS, added_F, strict=True)},
            float(model.intercept[column] - model.intercept.mean()),
        )
