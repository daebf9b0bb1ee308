"""How much better a sentence fits one text than others: the arithmetic, and a second opinion.

One encoder is one set of blind spots, and an agent finds them. So a frozen encoder of another
family is asked the same question, and the two answers are averaged (rewards/reading/reader.py).

Legend: N pairs, K texts of a bank, D width of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from rewriting.runtime.cache import BatchedScores
from rewriting.runtime.language_models.tuned_encoder import TunedEncoder


def info_nce(own_N: Tensor, others_NK: Tensor) -> Tensor:
    """[N]: log of e^own over the mean of e^own and all e^others, at most log(K + 1).

    With the own post among those it is compared with, the mean over rows is InfoNCE's lower bound
    on mutual information, and no single row can be worth more than log(K + 1).
    """
    all_NK = torch.cat([own_N[:, None], others_NK], dim=-1)
    return own_N - (torch.logsumexp(all_NK, dim=-1) - math.log(all_NK.shape[1]))


def contrasts(texts_ND: Tensor, sentences_ND: Tensor, bank_KD: Tensor, scale: Tensor) -> Tensor:
    """[N]: how much better each sentence fits its text than the texts of the bank, in nats.

    All vectors have length 1; scale: what a cosine of 1 is worth.
    """
    own_N = scale * (texts_ND * sentences_ND).sum(-1)
    return info_nce(own_N, scale * sentences_ND @ bank_KD.T)


class Vectors:
    """Texts to vectors, equal ones once; with a batch_size of 1 also over several calls."""

    def __init__(self, encode: Callable[[Sequence[str]], Tensor], batch_size: int = 1) -> None:
        self.known: BatchedScores[str, Tensor] = BatchedScores(
            lambda texts: list(encode(texts)), batch_size=batch_size
        )

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """[N, D]"""
        return torch.stack(self.known(texts))


class SecondOpinion(nn.Module):
    """A frozen encoder of another family, asked whether a sentence fits a post and a reply.

    Fit is the plain cosine: on EPITOME's dev part a map between the vectors of posts and
    sentences, learnt from 10,000 pairs, did no better. `worth` is its part of the reader's number
    of that name, fitted together with the reader's own part (form.py).

    scale: what a cosine of 1 is worth, in nats. batch_size: texts that are read at once.
    """

    posts_KD: Tensor
    replies_KD: Tensor
    scale: Tensor

    def __init__(
        self, encoder: str, max_tokens: int = 128, scale: float = 12.0, batch_size: int = 1
    ) -> None:
        super().__init__()
        self.encode = TunedEncoder(encoder, 0, max_tokens)
        self.register_buffer("scale", torch.tensor(scale))
        self.register_buffer("posts_KD", torch.zeros(0, self.encode.width))
        self.register_buffer("replies_KD", torch.zeros(0, self.encode.width))
        self.worth = nn.Linear(self.encode.width, 1, bias=False)
        nn.init.zeros_(self.worth.weight)
        self.vectors = Vectors(lambda texts: self.encode(texts), batch_size)

    @torch.no_grad()
    def set_banks(self, posts: Sequence[str], replies: Sequence[str]) -> None:
        """Take the posts and the replies that a sentence is contrasted with."""
        self.posts_KD, self.replies_KD = self.encode(posts), self.encode(replies)

    def opinions(
        self, posts: Sequence[str], sentences: Sequence[str], replies: Sequence[str]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """[N] each: the contrast of the posts, that of the rest of the replies, and `worth`."""
        # In one call: texts of similar length share a batch, whatever they are.
        vectors_ND = self.vectors([*posts, *sentences, *replies])
        posts_ND, sentences_ND, replies_ND = vectors_ND.split(len(posts))
        return (
            contrasts(posts_ND, sentences_ND, self.posts_KD, self.scale),
            contrasts(replies_ND, sentences_ND, self.replies_KD, self.scale),
            self.worth(sentences_ND)[:, 0],
        )
