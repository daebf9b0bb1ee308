"""Alignment: which of a peer's words meet which of a person's own appraisals?

A Siamese sentence encoder after ALOE (arXiv 2405.00948): both spans through one encoder, mean
pooling, cosine. A span alone often does not say what it is about ("That must ache every day"), so
the cosines of each span with the other's whole text join, and what the two appraise. Advice can
answer any appraisal and is recognised by other signs, so it has a rule and a threshold of its own.

Legend: P pairs, F features of a pair, D width of the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from rewards.appraisals.alignment.pairs import Grid, Side
from rewards.appraisals.appraiser import SHIPPED_NAMES
from rewards.appraisals.sentence_states import SentenceStates
from rewriting.data.appraisals import APPRAISALS
from rewriting.errors import UserError
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import load_tensors, save_tensors
from rewriting.runtime.models.hub import folder_with, found_folder

SHIPPED = Path(__file__).parents[2] / "shipped" / "alignment"
SETTINGS, WEIGHTS = "alignment.json", "alignment.safetensors"
COSINES = 4
FEATURES = COSINES + 2 * len(APPRAISALS) + 1
KINDS = ("empathy", "advice")
COSINE_SCALE = 4.0  # cosines of sentences differ by about a quarter
SIMILARITY_SCALE = 10.0  # so that a plain cosine, as a strength, spreads between 0 and 1
ADVICE = APPRAISALS.index("Advice")


class Alignment(Protocol):
    """Scores grids: a tensor [target spans, observer spans] each, above 0 where it calls aligned.

    thresholds: by kind, already taken off the scores. scale: of a score over that of a threshold.
    """

    name: str
    thresholds: dict[str, float]
    scale: float

    def scores(self, grids: Sequence[Grid]) -> list[Tensor]: ...


def cosine_features(
    target_ID: Tensor, observer_JD: Tensor, post_D: Tensor, reply_D: Tensor
) -> Tensor:
    """[I, J, 4]: span and span, span and reply, post and span, post and reply; of unit vectors."""
    of_spans_IJ = target_ID @ observer_JD.T
    of_target_IJ = (target_ID @ reply_D)[:, None].expand_as(of_spans_IJ)
    of_observer_IJ = (observer_JD @ post_D)[None, :].expand_as(of_spans_IJ)
    of_texts_IJ = (post_D @ reply_D).expand_as(of_spans_IJ)
    return torch.stack([of_spans_IJ, of_target_IJ, of_observer_IJ, of_texts_IJ], dim=-1)


def label_features(target_I9: Tensor, observer_J9: Tensor) -> Tensor:
    """[I, J, 19]: the labels of both spans, and how far they are the same."""
    shape = (len(target_I9), len(observer_J9))
    left = target_I9[:, None].expand(*shape, -1)
    right = observer_J9[None, :].expand(*shape, -1)
    return torch.cat([left, right, (left * right).sum(dim=-1, keepdim=True)], dim=-1)


class AlignmentHead(nn.Module):
    """A linear rule on the features of a pair for empathy, and one for advice.

    It starts as the plain cosine of the two spans. Trained projections of the embeddings did worse
    on dev than this rule (docs/results/appraisals.md).
    """

    def __init__(self) -> None:
        super().__init__()
        self.rules = nn.Linear(FEATURES, len(KINDS))
        with torch.no_grad():
            self.rules.weight.zero_()
            self.rules.weight[:, 0] = 1.5
            self.rules.bias.fill_(-4.0)

    def forward(self, cosines_P4: Tensor, labels_PF: Tensor) -> Tensor:
        """Logits [P]; where it is open whether a span is advice, between those of the two rules."""
        both_P2 = self.rules(torch.cat([COSINE_SCALE * cosines_P4, labels_PF], dim=-1))
        advice_P = labels_PF[:, len(APPRAISALS) + ADVICE]
        return both_P2[:, 0] * (1 - advice_P) + both_P2[:, 1] * advice_P


class SiameseAlignment:
    """Encoder, head, and a threshold on the logit for each kind."""

    def __init__(
        self,
        states: SentenceStates,
        head: AlignmentHead,
        *,
        thresholds: dict[str, float] | None = None,
        name: str = "alignment",
    ) -> None:
        self.states = states
        self.head = head
        self.scale = 1.0
        self.thresholds = thresholds or dict.fromkeys(KINDS, 0.0)
        self.name = name

    @torch.no_grad()
    def scores(self, grids: Sequence[Grid]) -> list[Tensor]:
        self.head.eval()
        return [
            self.logits(grid, self.states.embed(texts_of(grid))[:, -1]) - self._threshold(grid)
            for grid in grids
        ]

    def logits(self, grid: Grid, vectors_ND: Tensor) -> Tensor:
        """[I, J], from the unit vectors of `texts_of(grid)`; differentiable."""
        device = self.head.rules.weight.device
        shape = (len(grid.target.spans), len(grid.observer.spans))
        sizes = [len(part) for side in (grid.target, grid.observer) for part in _texts(side)]
        target, post, observer, reply = vectors_ND.to(device).split(sizes)
        cosines = cosine_features(target, observer, _mean(post), _mean(reply))
        labels = label_features(
            torch.tensor(grid.target.labels, device=device).reshape(shape[0], -1),
            torch.tensor(grid.observer.labels, device=device).reshape(shape[1], -1),
        )
        return self.head(cosines.flatten(0, 1), labels.flatten(0, 1)).reshape(shape).cpu()

    def _threshold(self, grid: Grid) -> Tensor:
        advice_J = torch.tensor([row[ADVICE] for row in grid.observer.labels])
        bars = [self.thresholds[kind] for kind in KINDS]
        return (bars[0] * (1 - advice_J) + bars[1] * advice_J)[None, :]

    @classmethod
    def load(
        cls, folder: str | Path = SHIPPED, *, states: SentenceStates | None = None
    ) -> SiameseAlignment:
        """The model of a folder or hub id; states of its encoder may be shared, if frozen."""
        folder = found_folder(folder, SETTINGS)
        settings = read_model_settings(folder, SETTINGS, weights=WEIGHTS, called="alignment model")
        weights = load_tensors(folder / WEIGHTS)
        with one_line_where_unfit(folder / SETTINGS):
            if states is None or not states.serves(settings["encoder"], settings["rank"]):
                states = SentenceStates.load(settings["encoder"], rank=settings["rank"])
            head = AlignmentHead()
            both = nn.ModuleDict({"states": states, "head": head})
            unknown = both.load_state_dict(weights, strict=False).unexpected_keys
            thresholds = {kind: float(settings["thresholds"][kind]) for kind in KINDS}
        if unknown:
            raise UserError(f"{folder} does not fit its own {SETTINGS}: {unknown[0]} is not in it.")
        if settings["rank"]:
            states.forget()
        return cls(states, head, thresholds=thresholds, name=folder.name)

    def save(self, folder: str | Path) -> None:
        """Write what was trained, and the encoder by name."""
        folder = Path(folder)
        both = nn.ModuleDict({"states": self.states, "head": self.head})
        trained = {n: p for n, p in both.named_parameters() if p.requires_grad}
        save_tensors(trained, folder / WEIGHTS)
        settings: dict[str, Any] = {
            "encoder": self.states.name,
            "rank": self.states.rank,
            "thresholds": self.thresholds,
        }
        write_model_settings(folder, SETTINGS, settings, weights=WEIGHTS)


class SimilarityAlignment:
    """Plain similarity: the cosine of two spans in any sentence-transformers model.

    The baseline; with a Siamese model of the hub, such as Blablablab/empathy-appraisal-alignment,
    also that model as it was published.
    """

    def __init__(self, encoder: Any, *, name: str = "similarity", threshold: float = 0.5) -> None:
        from rewriting.runtime.cache import ScoreCache

        self.encoder = encoder
        self.name = name
        self.thresholds = dict.fromkeys(KINDS, threshold)
        self.scale = SIMILARITY_SCALE
        self._known = ScoreCache(self._encode)

    def scores(self, grids: Sequence[Grid]) -> list[Tensor]:
        found = []
        for grid in grids:
            vectors = torch.stack(self._known([*grid.target.spans, *grid.observer.spans]))
            target, observer = vectors.split([len(grid.target.spans), len(grid.observer.spans)])
            advice = torch.tensor(grid.advice()[: len(grid.observer.spans)])
            bars = [self.thresholds[kind] for kind in KINDS]
            above = target @ observer.T - torch.where(advice, bars[1], bars[0])[None, :]
            found.append(self.scale * above)
        return found

    def _encode(self, texts: list[str]) -> list[Tensor]:
        vectors = self.encoder.encode(
            texts, batch_size=1, normalize_embeddings=True, show_progress_bar=False
        )
        return list(torch.tensor(vectors))


def load_alignment(name: str = "", *, states: SentenceStates | None = None) -> Alignment:
    """The shipped model, one that `train.py alignment` wrote, by folder or hub id, or a sentence
    encoder by name."""
    folder = SHIPPED if name in SHIPPED_NAMES else folder_with(name, SETTINGS)
    if folder is not None:
        return SiameseAlignment.load(folder, states=states)
    from rewriting.runtime.models.named import load_sentence_encoder

    return SimilarityAlignment(load_sentence_encoder(name), name=name)


def texts_of(grid: Grid) -> list[str]:
    """What has to be encoded for a grid: spans and sentences of the target, then the observer."""
    sides = (grid.target, grid.observer)
    return [text for side in sides for part in _texts(side) for text in part]


def _texts(side: Side) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return side.spans, side.sentences


def _mean(vectors_ND: Tensor) -> Tensor:
    return nn.functional.normalize(vectors_ND.mean(dim=0), dim=-1)
