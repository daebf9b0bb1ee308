"""The sense model: whether a sentence makes sense under a post, is true to it, and hurts nobody.

    model = SenseModel.load()
    (found,) = model.read([("My grandfather died on Sunday.", "What did you do after you died?")])
    found.welcome        # near 0

The reward `sense` and the identifier `joint` ask it. It reads post and sentence together, and has
learnt from sentences of our own agents (rewriting/sample/MACHINE_SENTENCES.md) and
of writers who went wrong on purpose (rewriting/sample/SENSE.md).

Legend: N sentences, O outputs, M mechanisms.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, normalize

from rewards.reading.labelled import Label, Page
from rewriting.exchange import MECHANISMS
from rewriting.runtime.cache import BatchedScores
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import save_tensors
from rewriting.runtime.language_models.pair_encoder import PairEncoder, Row
from rewriting.runtime.language_models.tuned_encoder import fill, ready, trained_tensors
from rewriting.runtime.models.hub import found_folder

SHIPPED = Path(__file__).parent.parent / "shipped" / "sense"
SETTINGS, WEIGHTS = "sense.json", "sense.safetensors"
BARS = "bars"  # of the levels that the identifier `joint` calls


@dataclass(frozen=True, slots=True)
class SenseReading:
    """Probabilities: that a sentence makes sense under its post, that it is true to it, that it
    hurts; and per mechanism that it earns any empathy there, and, if any, that it is strong."""

    sense: float
    true: float
    hurts: float
    some: tuple[float, ...]
    strong: tuple[float, ...]

    @property
    def welcome(self) -> float:
        """The probability of all three: makes sense, is true, does not hurt."""
        return self.sense * self.true * (1 - self.hurts)


class SenseModel(nn.Module):
    """A tuned encoder of post and sentence, and a linear head over the sentence's vector.

    bar: the probability of being welcome below which a gate may stop a sentence. batch_size:
    sentences that are read at once.
    """

    def __init__(
        self,
        encoder: str = "mpnet-base",
        rank: int = 16,
        max_tokens: int = 160,
        layers: int = 0,
        bar: float = 0.0,
        batch_size: int = 1,
        frozen_layers: int = 0,
    ) -> None:
        super().__init__()
        self.encode = PairEncoder(encoder, rank, max_tokens, layers, frozen_layers)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(self.encode.width, 3 + 2 * len(MECHANISMS))
        self.bar = bar
        self._known = self._memory(batch_size)

    def forward(self, rows: Sequence[Row]) -> Tensor:
        """[N, O]: logits of sense, true, hurts, some of each mechanism, strong of each."""
        # Unit vectors are stretched, so that the head learns at a usual rate.
        vectors_ND = normalize(self.encode(rows), dim=-1) * self.encode.width**0.5
        logits_NO: Tensor = self.head(self.dropout(vectors_ND))
        return logits_NO

    def read(self, pairs: Sequence[tuple[str, str]]) -> list[SenseReading]:
        """Read sentences under posts; equal pairs once, also over several calls."""
        return self._known(pairs)

    def unfit(self, post: str, sentences: Sequence[str]) -> list[str]:
        """The sentences below the bar under a post: those that a gate stops."""
        found = zip(sentences, self.read([(post, text) for text in sentences]), strict=True)
        return [sentence for sentence, reading in found if reading.welcome < self.bar]

    def _memory(self, batch_size: int) -> BatchedScores[tuple[str, str], SenseReading]:
        """Sorted by their posts, so that the sentences under one post share one reading of it."""
        return BatchedScores(
            self._read,
            batch_size=batch_size,
            length=lambda pair: len(pair[0]),
            group=lambda pair: pair[0],
        )

    @torch.no_grad()
    def _read(self, pairs: list[tuple[str, str]]) -> list[SenseReading]:
        """The pairs of one batch. Sentences under the same post share one reading of it."""
        self.eval()
        rows: dict[str, list[str]] = {}
        for post, text in pairs:
            rows.setdefault(post, []).append(text)
        found = self(list(rows.items())).sigmoid().tolist()
        asked = [(post, text) for post, own in rows.items() for text in own]
        known = dict(zip(asked, map(reading_of, found), strict=True))
        return [known[pair] for pair in pairs]

    def loss(self, pages: Sequence[Page]) -> tuple[Tensor, float]:
        """The sum of the cross-entropies of all that is known, and the number of sentences."""
        logits_NO = self([(page.post, [text for text, _ in page.sentences]) for page in pages])
        labels = [targets(label) for page in pages for _, label in page.sentences]
        targets_NO = torch.tensor(labels, device=logits_NO.device)
        known_NO = ~targets_NO.isnan()
        losses_NO = binary_cross_entropy_with_logits(
            logits_NO, targets_NO.nan_to_num(0.0), reduction="none"
        )
        return (losses_NO * known_NO).sum(), float(len(labels))

    def save(self, folder: Path, **facts: Any) -> None:
        """Write what was trained, and how to build the rest."""
        settings = self.encode.settings()
        settings |= {"frozen_layers": self.encode.frozen_layers, "bar": self.bar}
        save_tensors(trained_tensors(self), folder / WEIGHTS)
        write_model_settings(folder, SETTINGS, settings | facts, weights=WEIGHTS)

    @classmethod
    def load(cls, folder: Path | str = SHIPPED, *, batch_size: int = 1) -> Self:
        """The model that `train.py sense` has written, by folder or hub id, ready to use."""
        path = found_folder(folder, SETTINGS)
        settings = read_settings(path)
        settings.pop(BARS, None)
        with one_line_where_unfit(path / SETTINGS):
            model = cls(**settings, batch_size=batch_size)
        model.fill(path)
        model.encode.merge()
        return ready(model)

    def fill(self, path: Path, *, widen: bool = False) -> None:
        """Take the trained weights of a folder, for use or to go on training from them.

        widen: those of a model with a smaller rank too.
        """
        read_settings(path, checked=True)
        fill(self, path / WEIGHTS, widen=widen)

    @classmethod
    def shared(cls, batch_size: int = 1) -> SenseModel:
        """The shipped model, loaded once: the reward and the output gate ask the same one.

        Another batch size has a memory of its own, on the same weights.
        """
        return _shipped(batch_size)


def read_settings(path: Path, *, checked: bool = False) -> dict[str, Any]:
    """The settings of a folder that `train.py sense` has written. checked: its weights too."""
    return read_model_settings(
        path, SETTINGS, weights=WEIGHTS, called="sense model", checked=checked
    )


def reading_of(probabilities: Sequence[float]) -> SenseReading:
    sense, true, hurts, *rest = probabilities
    count = len(MECHANISMS)
    return SenseReading(sense, true, hurts, tuple(rest[:count]), tuple(rest[count:]))


def targets(label: Label) -> list[float]:
    """The outputs that a label asks for; nan where it says nothing. Strong is asked of some."""
    parts = [label.sense, label.true, label.hurts]
    some = [None if level is None else float(level > 0) for level in label.levels]
    strong = [float(level > 1) if level else None for level in label.levels]
    return [math.nan if value is None else value for value in (*parts, *some, *strong)]


@functools.cache
def _shipped(batch_size: int) -> SenseModel:
    if batch_size == 1:
        return SenseModel.load()
    model = copy.copy(_shipped(1))
    model._known = model._memory(batch_size)
    return model
