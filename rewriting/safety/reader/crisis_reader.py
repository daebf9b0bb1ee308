"""A learned reader beside the rules: does this post read like a crisis, and like which kind?

    reader = CrisisReader.load()
    reader.read("i keep thinking the river would be kinder")     # Reading(0.97, "suicide")

A sentence encoder with LoRA and two small heads, trained on the crisis corpus
(rewriting/sample/CRISIS.md) by `train.py crisis`. It reads what spelling tricks hide as the rules
do. A long text is read in overlapping windows, and the gravest one counts: a cry for help in the
middle of a long story is not averaged away. English only.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

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
from rewriting.safety.reader.windows import readings
from rewriting.safety.verdict import CLEAR, Verdict

SHIPPED = Path(__file__).parent.parent / "shipped" / "crisis"
SETTINGS, WEIGHTS = "crisis.json", "crisis.safetensors"
KINDS = (
    "suicide",
    "self-harm",
    "another person in danger",
    "psychosis",
    "violence at home",
    "sexual abuse",
    "an eating disorder",
    "harm to a baby or after birth",
    "an overdose",
)
"""What a crisis is about. Slang, irony or a child's voice are ways to say it and no kind."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How probable it is that a text is a crisis, and which kind it would be."""

    probability: float
    kind: str


@dataclass(frozen=True, slots=True)
class Bars:
    """The probabilities from which on, or below which, the reader has something to say."""

    possible: float = 0.5
    crisis: float = 0.9
    benign: float = 0.02
    """From here on a weak phrase of the rules counts."""
    hinted: float = 1.0
    """From here on a text is possible in which the rules found a hint; 1: no lower than others."""
    hinted_twice: float = 1.0
    """The same for a text with two different hints or more."""

    def possible_with(self, hints: int) -> float:
        """The bar for a text in which the rules found so many hints."""
        lower = (self.possible, self.hinted, self.hinted_twice)
        return min(lower[: hints + 1])


class CrisisReader(nn.Module):
    """A tuned encoder with two linear heads: is it a crisis, and of which kind.

    temperature: what logits are divided by, so that probabilities are calibrated. batch_size:
    windows that are read at once.
    """

    def __init__(
        self,
        encoder: str = "minilm-l6",
        rank: int = 6,
        max_tokens: int = 128,
        layers: int = 0,
        temperature: float = 1.0,
        bars: Bars | None = None,
        batch_size: int = 1,
    ) -> None:
        super().__init__()
        self.encode = TunedEncoder(encoder, rank, max_tokens, layers)
        self.crisis_head = nn.Linear(self.encode.width, 1)
        self.kind_head = nn.Linear(self.encode.width, len(KINDS))
        self.temperature, self.bars = temperature, bars or Bars()
        self._known: BatchedScores[str, Reading] = BatchedScores(self._read, batch_size=batch_size)

    def forward(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """[N] logits of a crisis, [N, kinds] logits of its kind.

        Unit vectors are stretched, so that the heads learn at a usual rate.
        """
        vectors_ND = self.encode(texts) * self.encode.width**0.5
        return self.crisis_head(vectors_ND)[:, 0], self.kind_head(vectors_ND)

    def read(self, text: str) -> Reading:
        """The gravest reading of a text: of all its windows, as it stands and as it was meant."""
        return max(self._known(readings(text)), key=lambda reading: reading.probability)

    def verdict(self, text: str) -> Verdict:
        """clear, possible or crisis, with the kind and the probability."""
        return self.judged(self.read(text))

    def judged(self, reading: Reading, hints: int = 0) -> Verdict:
        """The verdict that a reading leads to.

        hints: how many the rules found; each of the first two lowers the bar of what is possible.
        """
        said = f"{reading.kind} ({reading.probability:.2f})"
        if reading.probability >= self.bars.crisis:
            return Verdict("crisis", (f"reads like a crisis: {said}",))
        if reading.probability >= self.bars.possible_with(hints):
            return Verdict("possible", (f"may be a crisis: {said}",))
        return CLEAR

    @torch.no_grad()
    def _read(self, windows: list[str]) -> list[Reading]:
        """The windows of one batch; a blank one is no crisis."""
        self.eval()
        logits_N, kinds_NK = self(windows)
        probabilities = (logits_N / self.temperature).sigmoid().tolist()
        kinds = kinds_NK.argmax(1).tolist()
        return [
            Reading(probability if window.strip() else 0.0, KINDS[kind])
            for window, probability, kind in zip(windows, probabilities, kinds, strict=True)
        ]

    def save(self, folder: Path) -> None:
        settings = self.encode.settings() | {
            "temperature": self.temperature,
            "bars": asdict(self.bars),
        }
        save_tensors(trained_tensors(self), folder / WEIGHTS)
        write_model_settings(folder, SETTINGS, settings, weights=WEIGHTS)

    @classmethod
    def load(cls, folder: Path | str = SHIPPED, *, batch_size: int = 1) -> Self:
        """The reader that `train.py crisis` has written, by folder or hub id, ready to use."""
        path = found_folder(folder, SETTINGS)
        settings = read_model_settings(path, SETTINGS, weights=WEIGHTS, called="crisis reader")
        with one_line_where_unfit(path / SETTINGS):
            bars = Bars(**settings.pop("bars"))
            reader = cls(**settings, bars=bars, batch_size=batch_size)
        fill(reader, path / WEIGHTS, SETTINGS)
        reader.encode.merge()
        return ready(reader)

    @classmethod
    def shared(cls) -> CrisisReader:
        """The shipped reader, loaded once for all gates of a process."""
        return _shipped()


@functools.cache
def _shipped() -> CrisisReader:
    return CrisisReader.load()
