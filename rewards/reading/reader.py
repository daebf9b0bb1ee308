"""The reader of a sentence under a post: how well it fits there, and what kind of empathy it is.

    reader = SentenceReader.load("rewards/shipped/reader")
    (reading,) = reader.read([("Rex died today.", "Losing Rex must leave the house so quiet.")])
    reading.contrast    # in nats: how much likelier it is after this post than after others

Five things are read off the vectors of a post p, of a sentence t, and of the rest of the reply r
(one tuned encoder):

    contrast   s · p·(W t) less the log-mean of the same over this and a bank of other posts: the
               pointwise term of InfoNCE (arXiv 1807.03748), a bound on the mutual information of
               post and sentence, which is PARTNER's specificity (arXiv 2101.07714). A sentence that
               suits everybody has about 0, one that is meant for somebody else less
    reply      the same of s · r·t over a bank of replies: whether it belongs into this reply
    worth      b(t): the log-odds, up to a constant, that a sentence is a person's answer rather
               than stock, nonsense or an insult, from the sentence alone
    form       for each mechanism of EPITOME, whether the sentence has its form, and strongly so
    need       whether the post tells of trouble at all

Contrast and reply are averaged with what a frozen encoder of another family says (critic.py).
What follows from all of this for levels of empathy is fitted in
`rewards/identifiers/grounded/grounding.py`.

Legend: N pairs, K posts of the bank, M mechanisms, D width of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from rewards.reading.critic import SecondOpinion, Vectors, contrasts
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import load_tensors, save_tensors
from rewriting.runtime.language_models.tuned_encoder import (
    TunedEncoder,
    load_trained,
    ready,
    trained_tensors,
)
from rewriting.runtime.models.hub import found_folder

SHIPPED = Path(__file__).parent.parent / "shipped" / "reader"
SETTINGS, WEIGHTS, SECOND = "reader.json", "reader.safetensors", "second."
START_SCALE = 12.0  # cosines of posts and answers differ by a few tenths


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader says of one sentence under one post; logits and nats.

    reply: how much better it fits the rest of its reply than other replies, 0 where there is none.
    contrast_gap, reply_gap: half of what the reader's own opinion is above the second one; 0 where
    nobody else was asked.
    """

    contrast: float
    worth: float
    need: float
    some: tuple[float, ...]  # per mechanism: any of it against none
    strong: tuple[float, ...]  # per mechanism: strong against weak
    reply: float = 0.0
    contrast_gap: float = 0.0
    reply_gap: float = 0.0


class SentenceReader(nn.Module):
    """An encoder, four small heads, and a second opinion on fit, if there is one.

    `bank_KD` and `replies_KD` hold the vectors of the other posts and replies. batch_size: texts
    that are read at once.
    """

    bank_KD: Tensor
    replies_KD: Tensor

    def __init__(
        self,
        encoder: str = "minilm-l6",
        rank: int = 16,
        max_tokens: int = 96,
        batch_size: int = 1,
    ) -> None:
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
        self.register_buffer("replies_KD", torch.zeros(0, width))
        self.second: SecondOpinion | None = None
        self._load_second: Callable[[], SecondOpinion] | None = None
        self._posts = Vectors(lambda texts: self.encode(texts), batch_size)
        self._sentences = Vectors(lambda texts: self.encode(texts), batch_size)

    def fits(self, posts_ND: Tensor, sentences_ND: Tensor) -> Tensor:
        """[N, N']: s · p·(W t) of every post with every sentence, before `worth` is added."""
        mapped_ND = normalize(self.map(sentences_ND), dim=-1)
        return self.log_scale.exp() * posts_ND @ mapped_ND.T

    @torch.no_grad()
    def set_banks(self, posts: Sequence[str], replies: Sequence[str]) -> None:
        """Take the posts and the replies that a sentence is contrasted with."""
        self.eval()
        self.bank_KD, self.replies_KD = self.encode(posts).detach(), self.encode(replies).detach()
        if self.second is not None:
            self.second.set_banks(posts, replies)

    @torch.no_grad()
    def read(
        self,
        pairs: Sequence[tuple[str, str]],
        replies: Sequence[str] | None = None,
        *,
        alone: bool = False,
    ) -> list[Reading]:
        """Read sentences under posts. Equal texts are encoded once, also over several calls.

        replies: for each pair the rest of the reply that the sentence stands in; blank or None
        where there is none. alone: do without the second opinion, which costs several times as
        much as the reader itself and is loaded when it is first asked; `worth` is then the reader's
        own part of it alone.
        """
        if not pairs:
            return []
        self.eval()
        posts, sentences = [post for post, _ in pairs], [sentence for _, sentence in pairs]
        rest = list(replies) if replies is not None else [""] * len(pairs)
        posts_ND, sentences_ND = self._posts(posts), self._sentences(sentences)
        opinions = [self._contrasts(posts_ND, sentences_ND, rest)]
        worth_N = self.worth(sentences_ND)[:, 0]
        if not alone and (second := self._second()) is not None:
            *fits, second_worth_N = second.opinions(posts, sentences, rest)
            opinions.append((fits[0], fits[1]))
            worth_N = worth_N + second_worth_N
        has_rest_N = torch.tensor([bool(text.strip()) for text in rest], device=posts_ND.device)
        # [O, 2, N]: opinions on the post, and on the rest of the reply.
        opinions_O2N = torch.stack([torch.stack(one) for one in opinions])
        opinions_O2N[:, 1] *= has_rest_N
        columns = (
            opinions_O2N[:, 0].mean(0),
            worth_N,
            self.need(posts_ND)[:, 0],
            *self.form(sentences_ND).split(len(MECHANISMS), dim=-1),
            opinions_O2N[:, 1].mean(0),
            *((opinions_O2N[0] - opinions_O2N[-1]) / 2),
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            Reading(contrast, worth, need, tuple(some), tuple(strong), reply, *gaps)
            for contrast, worth, need, some, strong, reply, *gaps in rows
        ]

    def _second(self) -> SecondOpinion | None:
        """The second opinion, loaded now if the folder has one that was not needed before."""
        if self.second is None and self._load_second is not None:
            self.second, self._load_second = self._load_second(), None
        return self.second

    def _contrasts(
        self, posts_ND: Tensor, sentences_ND: Tensor, rest: Sequence[str]
    ) -> tuple[Tensor, Tensor]:
        """[N] and [N]: the reader's own opinion. The map is that from sentences to posts."""
        scale = self.log_scale.exp()
        mapped_ND = normalize(self.map(sentences_ND), dim=-1)
        own_N = contrasts(posts_ND, mapped_ND, self.bank_KD, scale)
        return own_N, contrasts(self._posts(rest), sentences_ND, self.replies_KD, scale)

    def save(self, folder: Path, **facts: Any) -> None:
        """Write what was trained, the bank, and how to build the rest."""
        encoder = self.encode
        settings: dict[str, Any] = {
            "encoder": encoder.name,
            "rank": encoder.rank,
            "max_tokens": encoder.max_tokens,
        }
        if self.second is not None:
            second = self.second.encode
            settings["second"] = {"encoder": second.name, "max_tokens": second.max_tokens}
        save_tensors(trained_tensors(self), folder / WEIGHTS)
        write_model_settings(folder, SETTINGS, settings | facts, weights=WEIGHTS)

    @classmethod
    def load(cls, folder: Path | str = SHIPPED, *, batch_size: int = 1) -> Self:
        """The reader that `train.py reader` has written, by folder or hub id, ready to use."""
        path = found_folder(folder, SETTINGS)
        settings = read_settings(path, checked=True)
        with one_line_where_unfit(path / SETTINGS):
            shape = (settings["encoder"], settings["rank"], settings["max_tokens"])
            reader = cls(*shape, batch_size=batch_size)
        tensors = load_tensors(path / WEIGHTS)
        of_second = {name: tensors.pop(name) for name in list(tensors) if name.startswith(SECOND)}
        fill(reader, tensors, path)
        reader.encode.merge()
        if "second" in settings:
            second = settings["second"] | {"batch_size": batch_size}
            reader._load_second = lambda: loaded_second(second, of_second, path)
        return ready(reader)


def loaded_second(
    settings: dict[str, Any], tensors: dict[str, Tensor], path: Path
) -> SecondOpinion:
    """The second opinion of a reader's folder."""
    second = SecondOpinion(**settings)
    fill(second, {name.removeprefix(SECOND): one for name, one in tensors.items()}, path)
    return ready(second)


def fill(module: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Put the tensors of a folder in their places; banks take the size that they have there."""
    for name, buffer in list(module.named_buffers()):
        if name.endswith("_KD") and name in tensors:
            buffer.resize_(tensors[name].shape)
    if misfit := load_trained(module, tensors):
        raise UserError(
            f"{path}: weights and {SETTINGS} do not fit each other: {misfit}. A reader of an "
            "earlier version has to be trained again."
        )


def read_settings(folder: Path, *, checked: bool = False) -> dict[str, Any]:
    """The settings of a folder that `train.py reader` has written. checked: its weights too."""
    return read_model_settings(folder, SETTINGS, weights=WEIGHTS, called="reader", checked=checked)
