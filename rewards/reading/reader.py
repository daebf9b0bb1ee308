"""The reader of a sentence under a post: how well it fits there, and what kind of empathy it is.

    reader = SentenceReader.load("rewards/shipped/reader")
    (reading,) = reader.read([("Rex died today.", "Losing Rex must leave the house so quiet.")])
    reading.contrast    # in nats: how much likelier it is after this post than after others

Four things are read off two vectors, p of the post and t of the sentence (one tuned encoder):

    contrast   s · p·(W t) less the log-mean of the same over this and a bank of other posts: the
               pointwise term of InfoNCE (arXiv 1807.03748), a bound on the mutual information of
               post and sentence, which is PARTNER's specificity (arXiv 2101.07714). A sentence that
               suits everybody has about 0, one that is meant for somebody else less
    worth      b(t): the log-odds, up to a constant, that a sentence is a person's answer rather
               than stock, nonsense or an insult, from the sentence alone
    form       for each mechanism of EPITOME, whether the sentence has its form, and strongly so
    need       whether the post tells of trouble at all

What follows from them for levels of empathy is fitted in `rewards/identifiers/grounding.py`.

Legend: N pairs, K posts of the bank, M mechanisms, D width of a vector.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from rewards.reading.encoder import TunedEncoder, load_trained, trained_tensors
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from rewriting.runtime.cache import ScoreCache
from rewriting.runtime.files import disk_errors, write_json

SHIPPED = Path(__file__).parent.parent / "shipped" / "reader"
SETTINGS, WEIGHTS = "reader.json", "reader.safetensors"
START_SCALE = 12.0  # cosines of posts and answers differ by a few tenths


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader says of one sentence under one post; logits and nats."""

    contrast: float
    worth: float
    need: float
    some: tuple[float, ...]  # per mechanism: any of it against none
    strong: tuple[float, ...]  # per mechanism: strong against weak


class SentenceReader(nn.Module):
    """An encoder and four small heads. `bank_KD` holds the vectors of the other posts."""

    bank_KD: Tensor

    def __init__(self, encoder: str = "minilm-l6", rank: int = 16, max_tokens: int = 96) -> None:
        super().__init__()
        self.encode = TunedEncoder(encoder, rank, max_tokens)
        width = self.encode.width
        self.map = nn.Linear(width, width, bias=False)
        nn.init.eye_(self.map.weight)
        self.worth = nn.Linear(width, 1)
        nn.init.zeros_(self.worth.weight)
        nn.init.zeros_(self.worth.bias)
        self.log_scale = nn.Parameter(torch.tensor(math.log(START_SCALE)))
        self.form = nn.Sequential(nn.Dropout(0.1), nn.Linear(width, 2 * len(MECHANISMS)))
        self.need = nn.Linear(width, 1)
        self.register_buffer("bank_KD", torch.zeros(0, width))
        self._posts: ScoreCache[str, Tensor] = ScoreCache(self._embedded)
        self._sentences: ScoreCache[str, Tensor] = ScoreCache(self._embedded)

    def fits(self, posts_ND: Tensor, sentences_ND: Tensor) -> Tensor:
        """[N, N']: s · p·(W t) of every post with every sentence, before `worth` is added."""
        mapped_ND = normalize(self.map(sentences_ND), dim=-1)
        return self.log_scale.exp() * posts_ND @ mapped_ND.T

    def set_bank(self, posts: Sequence[str]) -> None:
        """Take the posts that a sentence is contrasted with."""
        self.eval()
        with torch.no_grad():
            self.bank_KD = self.encode(posts).detach()

    @torch.no_grad()
    def read(self, pairs: Sequence[tuple[str, str]]) -> list[Reading]:
        """Read sentences under posts. Equal texts are encoded once, also over several calls."""
        if not pairs:
            return []
        self.eval()
        posts_ND = torch.stack(self._posts([post for post, _ in pairs]))
        sentences_ND = torch.stack(self._sentences([sentence for _, sentence in pairs]))
        mapped_ND = normalize(self.map(sentences_ND), dim=-1)
        scale = self.log_scale.exp()
        fit_N = scale * (posts_ND * mapped_ND).sum(-1)
        bank_NK = scale * mapped_ND @ self.bank_KD.T
        contrast_N = info_nce(fit_N, bank_NK)
        worth_N = self.worth(sentences_ND)[:, 0]
        need_N = self.need(posts_ND)[:, 0]
        form_NF = self.form(sentences_ND)
        count = len(MECHANISMS)
        return [
            Reading(contrast, worth, need, tuple(form[:count]), tuple(form[count:]))
            for contrast, worth, need, form in zip(
                contrast_N.tolist(),
                worth_N.tolist(),
                need_N.tolist(),
                form_NF.tolist(),
                strict=True,
            )
        ]

    def _embedded(self, texts: list[str]) -> list[Tensor]:
        """One by one: a vector must not depend, even in its last bit, on what it came with, or a
        resumed run with an empty memory would not give the same bits."""
        return [self.encode([text])[0] for text in texts]

    def save(self, folder: Path, **facts: Any) -> None:
        """Write what was trained, the bank, and how to build the rest."""
        from safetensors.torch import save_file

        encoder = self.encode
        settings = {"encoder": encoder.name, "rank": encoder.rank, "max_tokens": encoder.max_tokens}
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / SETTINGS, settings | facts)
        with disk_errors(folder):
            save_file(trained_tensors(self), folder / WEIGHTS)
            (folder / WEIGHTS).chmod(0o644)  # safetensors writes 0600

    @classmethod
    def load(cls, folder: Path | str = SHIPPED) -> Self:
        """The reader in a folder that `train.py reader` has written, ready to use."""
        from safetensors.torch import load_file

        path = Path(folder).expanduser()
        settings = read_settings(path)
        reader = cls(settings["encoder"], settings["rank"], settings["max_tokens"])
        tensors = load_file(path / WEIGHTS)
        if "bank_KD" not in tensors:
            raise UserError(f"{path}: {WEIGHTS} holds no bank of posts.")
        reader.bank_KD = torch.zeros_like(tensors["bank_KD"], dtype=torch.float32)
        if misfit := load_trained(reader, tensors):
            raise UserError(f"{path}: weights and {SETTINGS} do not fit each other: {misfit}.")
        reader.encode.merge()
        return reader.requires_grad_(False).eval()


def read_settings(folder: Path) -> dict[str, Any]:
    """The settings of a folder that `train.py reader` has written."""
    if not (folder / SETTINGS).is_file() or not (folder / WEIGHTS).is_file():
        raise UserError(f"{folder} holds no reader: it needs {SETTINGS} and {WEIGHTS}.")
    try:
        settings: dict[str, Any] = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UserError(f"{folder / SETTINGS} is damaged: {error}.") from error
    return settings


def info_nce(own_N: Tensor, others_NK: Tensor) -> Tensor:
    """[N]: log of e^own over the mean of e^own and all e^others, at most log(K + 1).

    With the own post among those it is compared with, the mean over rows is InfoNCE's lower bound
    on mutual information, and no single row can be worth more than log(K + 1).
    """
    all_NK = torch.cat([own_N[:, None], others_NK], dim=-1)
    return own_N - (torch.logsumexp(all_NK, dim=-1) - math.log(all_NK.shape[1]))
