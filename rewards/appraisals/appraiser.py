"""Appraisals: how the sentences of a post or a reply judge the situation they speak of.

    appraiser = load_appraiser()
    (found,) = appraise(appraiser, ["It was my fault. What now?"], ["target"])
    found[0].label, found[0].start, found[0].end          # "Self-Other Agency", 0, 16

After ALOE (arXiv 2405.00948), sentence by sentence. Two kinds of model answer: a small head on a
sentence encoder (here, fast, shipped), and any language model asked to fill a gap
(prompts.py).

Legend: N sentences, K layers, D width, L = 10 labels: the nine appraisals, and none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from rewards.appraisals.sentence_states import LAYERS, SentenceStates
from rewards.appraisals.units import LABELS
from rewriting.data.appraisals import NO_APPRAISAL, Role, sentence_bounds
from rewriting.errors import UserError
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import load_tensors, save_tensors
from rewriting.runtime.models.hub import folder_with, found_folder

SHIPPED = Path(__file__).parent.parent / "shipped" / "appraisals"
SHIPPED_NAMES = ("", "shipped")
SETTINGS, WEIGHTS = "appraisals.json", "appraisals.safetensors"
SIGNS = 3  # what is given beside the states: who speaks, a question, its length


@dataclass(frozen=True, slots=True)
class Appraisal:
    """A sentence of a text, where it stands, and the probability of each label for it."""

    start: int
    end: int
    text: str
    probabilities: tuple[float, ...]

    @property
    def label(self) -> str:
        return LABELS[max(range(len(LABELS)), key=self.probabilities.__getitem__)]

    @property
    def any_appraisal(self) -> float:
        """The probability that it appraises at all."""
        return 1.0 - self.probabilities[LABELS.index(NO_APPRAISAL)]

    def probability(self, label: str) -> float:
        return self.probabilities[LABELS.index(label)]


class Appraiser(Protocol):
    """Says of sentences which appraisal they make: [N, L], rows that add up to 1."""

    name: str

    def probabilities(self, texts: Sequence[str], roles: Sequence[Role]) -> Tensor: ...


def appraise(
    appraiser: Appraiser, texts: Sequence[str], roles: Sequence[Role]
) -> list[list[Appraisal]]:
    """The sentences of each text with their appraisals, in order; blank texts have none."""
    bounds = [sentence_bounds(text) for text in texts]
    sentences = [
        (text[a:b], role)
        for text, role, places in zip(texts, roles, bounds, strict=True)
        for a, b in places
    ]
    if not sentences:
        return [[] for _ in texts]
    words, speakers = zip(*sentences, strict=True)
    rows = iter(appraiser.probabilities(words, speakers).tolist())
    return [
        [Appraisal(a, b, text[a:b], tuple(next(rows))) for a, b in places]
        for text, places in zip(texts, bounds, strict=True)
    ]


class AppraisalHead(nn.Module):
    """A linear rule on the states of a sentence and a few plain signs → logits [N, L].

    Linear, as there are some thousand sentences to learn from; a hidden layer was not tried.
    temperature: divides the logits; fitted on dev (arXiv 1706.04599).
    """

    temperature: Tensor

    def __init__(self, width: int, dropout: float = 0.3) -> None:
        super().__init__()
        self.width = width
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(LAYERS * width + SIGNS, len(LABELS))
        nn.init.zeros_(self.linear.weight)
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, states_NKD: Tensor, signs_NS: Tensor) -> Tensor:
        # Times √D, so that the entries are about 1 and the layer learns at a usual rate.
        flat = self.dropout(states_NKD.flatten(1) * self.width**0.5)
        return self.linear(torch.cat([flat, signs_NS], dim=-1))


def signs_of(texts: Sequence[str], roles: Sequence[Role]) -> Tensor:
    """[N, 3]: an observer speaks; it ends in a question mark; its words over 20, at most 2."""
    rows = [
        [
            float(role == "observer"),
            float(text.rstrip().endswith("?")),
            min(len(text.split()) / 20, 2.0),
        ]
        for text, role in zip(texts, roles, strict=True)
    ]
    return torch.tensor(rows).reshape(len(rows), SIGNS)


class SentenceAppraiser:
    """The fast appraiser: an encoder's states and a head."""

    def __init__(self, states: SentenceStates, head: AppraisalHead, name: str = "head") -> None:
        self.states = states
        self.head = head.eval()
        self.name = name

    @torch.no_grad()
    def probabilities(self, texts: Sequence[str], roles: Sequence[Role]) -> Tensor:
        if not texts:
            return torch.zeros(0, len(LABELS))
        self.head.eval()
        device = self.head.linear.weight.device
        logits_NL = self.head(
            self.states.embed(texts).to(device), signs_of(texts, roles).to(device)
        )
        return (logits_NL / self.head.temperature).softmax(dim=-1).cpu()

    @classmethod
    def load(
        cls, folder: str | Path = SHIPPED, *, states: SentenceStates | None = None
    ) -> SentenceAppraiser:
        """The appraiser of a folder or hub id; states of its encoder may be shared, if frozen."""
        folder = found_folder(folder, SETTINGS)
        settings = read_settings(folder, checked=True)
        weights = load_tensors(folder / WEIGHTS, dtype=torch.float32)
        with one_line_where_unfit(folder / SETTINGS):
            if states is None or not states.serves(settings["encoder"], settings["rank"]):
                states = SentenceStates.load(settings["encoder"], rank=settings["rank"])
            head = AppraisalHead(settings["width"], settings["dropout"])
            both = nn.ModuleDict({"states": states, "head": head})
            unknown = both.load_state_dict(weights, strict=False).unexpected_keys
        if unknown:
            raise UserError(f"{folder} does not fit its own {SETTINGS}: {unknown[0]} is not in it.")
        states.forget()
        return cls(states, head, name=folder.name)

    def save(self, folder: str | Path) -> None:
        """Write what was trained, and the encoder by name."""
        folder = Path(folder)
        both = nn.ModuleDict({"states": self.states, "head": self.head})
        trained = {n: p.detach() for n, p in both.named_parameters() if p.requires_grad}
        trained |= {f"head.{n}": t for n, t in self.head.state_dict().items()}
        save_tensors(trained, folder / WEIGHTS)
        settings: dict[str, Any] = {
            "kind": "head",
            "encoder": self.states.name,
            "rank": self.states.rank,
            "width": self.head.width,
            "dropout": self.head.dropout.p,
            "labels": LABELS,
        }
        write_model_settings(folder, SETTINGS, settings, weights=WEIGHTS)


def read_settings(folder: Path, *, checked: bool = False) -> dict[str, Any]:
    """The settings of a folder that `train.py appraisals` has written. checked: its weights too."""
    return read_model_settings(
        folder, SETTINGS, weights=WEIGHTS, called="appraiser", checked=checked
    )


def load_appraiser(name: str = "", *, states: SentenceStates | None = None) -> Appraiser:
    """The shipped appraiser, one that `train.py appraisals` wrote, by folder or hub id, or a model
    by name.

    Any causal, seq2seq or masked language model can be named, a folder, a short name or a hub id;
    it is asked without training. A classifier of the hub is read by the names of its labels.
    """
    folder = SHIPPED if name in SHIPPED_NAMES else folder_with(name, SETTINGS)
    if folder is not None:
        if read_settings(folder).get("kind") == "head":
            return SentenceAppraiser.load(folder, states=states)
        from rewards.appraisals.prompts import PromptAppraiser

        return PromptAppraiser.load(folder)
    from rewards.appraisals.models import appraiser_by_name

    return appraiser_by_name(name)
