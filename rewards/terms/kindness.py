"""`kindness`: whether a new sentence would hurt the person who reads it.

    model = KindnessModel.load()
    model.probabilities(["Why do you always make it about yourself?"])   # near 1: it hurts

The output gate of `rewriting rewrite` asks it too (policies/gated.py). It reads a sentence
without the post: what hurts only there passes (docs/results/reward.md).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from rewards.terms.contrast import new_of_rows
from rewriting.runtime.cache import BatchedScores
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import save_tensors
from rewriting.runtime.language_models.tuned_encoder import (
    TunedEncoder,
    fill,
    ready,
    trained_tensors,
)
from rewriting.runtime.models.hub import found_folder

SHIPPED = Path(__file__).parent.parent / "shipped" / "kindness"
SETTINGS, WEIGHTS = "kindness.json", "kindness.safetensors"


class Kindness:
    """Minus the probability that the worst of the new sentences hurts: −1 to 0.

    Blame, mockery, invalidation, minimising, prying, commands, contempt, verdicts, harmful
    instructions, harm encouraged, leering, diagnoses and faith as a verdict
    (rewriting/sample/COUNTERFACTUALS.md says how they were written). The original response is not
    judged: it is a person's own.

    In: completions, response_post, optionally sentence. Out: −1 to 0; 0 where nothing is new.
    """

    def __init__(self, model: KindnessModel, *, name: str = "kindness") -> None:
        self.__name__ = name
        self.model = model

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        response_post: Sequence[str],
        sentence: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float]:
        rows = new_of_rows(completions, response_post, sentence)
        found = iter(self.model.probabilities([text for new in rows for text in new]))
        return [0.0 - max([next(found) for _ in new], default=0.0) for new in rows]


class KindnessModel(nn.Module):
    """A tuned encoder and a linear head over its vector: the logit that a sentence hurts.

    bar: the probability from which on a gate may stop a sentence. batch_size: sentences that are
    read at once.
    """

    def __init__(
        self,
        encoder: str = "mpnet-base",
        rank: int = 16,
        max_tokens: int = 64,
        layers: int = 0,
        bar: float = 0.5,
        batch_size: int = 1,
    ) -> None:
        super().__init__()
        self.encode = TunedEncoder(encoder, rank, max_tokens, layers)
        self.head = nn.Linear(self.encode.width, 1)
        self.bar = bar
        self._known = self._memory(batch_size)

    def forward(self, sentences: Sequence[str]) -> Tensor:
        """[N]: logits. Unit vectors are stretched, so that the head learns at a usual rate."""
        vectors_ND = self.encode(sentences) * self.encode.width**0.5
        logits_N: Tensor = self.head(vectors_ND)[:, 0]
        return logits_N

    def probabilities(self, sentences: Sequence[str]) -> list[float]:
        """That each sentence hurts. Equal sentences are read once; a blank one hurts nobody."""
        return self._known(sentences)

    def hurtful(self, sentences: Sequence[str]) -> list[str]:
        """The sentences at or above the bar: those that a gate stops."""
        found = zip(sentences, self.probabilities(sentences), strict=True)
        return [sentence for sentence, probability in found if probability >= self.bar]

    def _memory(self, batch_size: int) -> BatchedScores[str, float]:
        return BatchedScores(self._read, batch_size=batch_size)

    @torch.no_grad()
    def _read(self, sentences: list[str]) -> list[float]:
        """The sentences of one batch."""
        self.eval()
        found: list[float] = self(sentences).sigmoid().tolist()
        pairs = zip(sentences, found, strict=True)
        return [value if text.strip() else 0.0 for text, value in pairs]

    def save(self, folder: Path) -> None:
        settings = self.encode.settings() | {"bar": self.bar}
        save_tensors(trained_tensors(self), folder / WEIGHTS)
        write_model_settings(folder, SETTINGS, settings, weights=WEIGHTS)

    @classmethod
    def load(cls, folder: Path | str = SHIPPED, *, batch_size: int = 1) -> Self:
        """The model that `train.py kindness` has written, by folder or hub id, ready to use."""
        path = found_folder(folder, SETTINGS)
        settings = read_model_settings(path, SETTINGS, weights=WEIGHTS, called="kindness model")
        with one_line_where_unfit(path / SETTINGS):
            model = cls(**settings, batch_size=batch_size)
        fill(model, path / WEIGHTS, SETTINGS)
        model.encode.merge()
        return ready(model)

    @classmethod
    def shared(cls, batch_size: int = 1) -> KindnessModel:
        """The shipped model, loaded once: the reward and the output gate ask the same one.

        Another batch size has a memory of its own, on the same weights.
        """
        return _shipped(batch_size)


@functools.cache
def _shipped(batch_size: int) -> KindnessModel:
    if batch_size == 1:
        return KindnessModel.load()
    model = copy.copy(_shipped(1))
    model._known = model._memory(batch_size)
    return model
