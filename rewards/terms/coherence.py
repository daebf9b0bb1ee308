"""Coherence: does the new sentence belong to the response it was put into?

Legend: B pairs, D width of a sentence embedding, H width of its projection, F features of a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rewards.protocol import texts
from rewriting.errors import UserError
from rewriting.new_sentences import new_flags
from rewriting.runtime.cache import CACHE_SIZE, BatchedScores
from rewriting.runtime.files.model_files import (
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import load_tensors, save_tensors
from rewriting.runtime.models.hub import found_folder
from rewriting.runtime.models.named import load_sentence_encoder
from rewriting.sentences import split_sentences

SHIPPED = Path(__file__).parent.parent / "shipped" / "coherence"
WEIGHTS, CONFIG = "model.safetensors", "config.json"
NEUTRAL = 0.5
COSINE_SCALE = 4.0  # the cosines of sentences differ by about a quarter


class Coherence:
    """The mean probability that the new sentences and the existing ones are of one response.

    A term of PARTNER's reward (arXiv 2101.07714), in [0, 1]. New is what the column `sentence`
    says; without it, the sentences of the completion that the original response does not have.
    A completion with nothing new, or with nothing old, is judged by its adjacent sentences.

    In a completion of a single sentence there are no two to compare. Where an edit put it in place
    of the original, it is compared with that: what replaces a sentence is to belong where that one
    stood. Anything else gets `neutral`: 0.5 is what the calibrated model says when it knows
    nothing, and about what it says of neighbouring sentences on average. Without a value, replacing
    or keeping the only sentence would earn nothing and inserting another one half a point. None
    leaves completions of one sentence out, as tables do. Where the original is blank, there is
    nothing to belong to, and nothing else to do than to insert: None.
    """

    def __init__(
        self,
        model: CoherenceModel | None = None,
        *,
        neutral: float | None = NEUTRAL,
        name: str = "coherence",
    ) -> None:
        self.model = model or CoherenceModel.load()
        self.neutral = neutral
        self.__name__ = name

    def __call__(
        self,
        completions: Sequence[Any],
        response_post: Sequence[str],
        sentence: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float | None]:
        rewritten = texts(completions)
        sentences = sentence or [None] * len(rewritten)
        columns = list(zip(rewritten, response_post, sentences, strict=True))
        rows = [sentence_pairs(*row) for row in columns]
        if self.neutral is not None:
            rows = [pairs or replaced_pairs(*row) for pairs, row in zip(rows, columns, strict=True)]
        scores = iter(self.model.probabilities([pair for pairs in rows for pair in pairs]))
        found = [[next(scores) for _ in pairs] for pairs in rows]
        return [
            sum(own) / len(own) if own else self._without_pairs(completion, original)
            for own, (completion, original, _) in zip(found, columns, strict=True)
        ]

    def _without_pairs(self, completion: str, original: str) -> float | None:
        return self.neutral if completion.strip() and original.strip() else None


def sentence_pairs(
    completion: str, response_post: str, sentence: str | None = None
) -> list[tuple[str, str]]:
    """The pairs of sentences that a completion is judged by, in the order of the text."""
    all_sentences = split_sentences(completion).texts
    is_new = new_flags(all_sentences, response_post, sentence)
    if all(is_new) or not any(is_new):
        return list(pairwise(all_sentences))
    places = range(len(all_sentences))
    new = [place for place in places if is_new[place]]
    old = [place for place in places if not is_new[place]]
    ordered = [sorted(pair) for pair in product(new, old)]
    return [(all_sentences[a], all_sentences[b]) for a, b in ordered]


def replaced_pairs(
    completion: str, response_post: str, sentence: str | None
) -> list[tuple[str, str]]:
    """The only sentence of a completion, with each of those that it was put in place of.

    None where no edit wrote it, or where it says the same again: a copy would belong there best.
    """
    if not sentence or not all(new_flags(split_sentences(completion).texts, response_post, None)):
        return []
    return [(old, completion.strip()) for old in split_sentences(response_post).texts]


class CoherenceHead(nn.Module):
    """Two sentence embeddings → the logit that they are of one response.

    Both are projected to a narrow space where what goes together can lie together. The features
    [u, v, |u − v|, u∘v] are InferSent's (arXiv 1705.02364); the cosine of the embeddings joins
    them. Belonging together has no order, so the logit is the mean over both orders.
    """

    def __init__(self, width: int, hidden: int = 64, dropout: float = 0.3) -> None:
        super().__init__()
        self.shape = {"width": width, "hidden": hidden, "dropout": dropout}
        self.project = nn.Sequential(nn.Dropout(dropout), nn.Linear(width, hidden))
        self.layers = nn.Sequential(
            nn.Linear(4 * hidden + 1, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 1)
        )

    def forward(self, u_BD: Tensor, v_BD: Tensor) -> Tensor:
        """Unit vectors [B, D], [B, D] → logits [B]."""
        cosine_B1 = (u_BD * v_BD).sum(dim=-1, keepdim=True)
        # Times √D, so that the entries are about 1 and the layers learn at a usual rate.
        scale = u_BD.shape[-1] ** 0.5
        u_BH, v_BH = self.project(u_BD * scale), self.project(v_BD * scale)
        shared = [(u_BH - v_BH).abs(), u_BH * v_BH, COSINE_SCALE * cosine_B1]
        there_BF = torch.cat([u_BH, v_BH, *shared], dim=-1)
        back_BF = torch.cat([v_BH, u_BH, *shared], dim=-1)
        return (self.layers(there_BF) + self.layers(back_BF)).squeeze(-1) / 2


class CoherenceModel:
    """p(two sentences are of the same response): a frozen sentence encoder and a small head.

    Where the pairs are half from one response and half not, the probability is calibrated: the
    logit is divided by a temperature fitted on held-out pairs (arXiv 1706.04599). Equal sentences
    are encoded once. encoder: anything with sentence-transformers' `encode`. batch_size: sentences
    that it reads at once (remember_all: see BatchedScores).
    """

    def __init__(
        self,
        encoder: Any,
        head: CoherenceHead,
        *,
        temperature: float = 1.0,
        encoder_name: str = "",
        batch_size: int = 1,
        remember_all: bool = False,
        cache_size: int = CACHE_SIZE,
    ) -> None:
        self.encoder = encoder
        self.head = head.eval()
        self.temperature = temperature
        self.encoder_name = encoder_name
        self.batch_size = batch_size
        self._embeddings: BatchedScores[str, Tensor] = BatchedScores(
            self._encode, batch_size=batch_size, remember_all=remember_all, size=cache_size
        )

    @classmethod
    def load(
        cls, folder: str | Path = SHIPPED, *, encoder: Any = None, batch_size: int = 1
    ) -> CoherenceModel:
        """The model in a folder or of a hub id, by default the shipped one; its encoder comes by
        name."""
        folder = found_folder(folder, CONFIG)
        config = read_model_settings(folder, CONFIG, weights=WEIGHTS, called="coherence model")
        if not {"encoder", "temperature", "width", "hidden", "dropout"} <= config.keys():
            raise UserError(f"{folder} holds another kind of model, not a coherence model.")
        with one_line_where_unfit(folder / CONFIG):
            head = CoherenceHead(config["width"], config["hidden"], config["dropout"])
            head.load_state_dict(load_tensors(folder / WEIGHTS))
            return cls(
                encoder or load_sentence_encoder(config["encoder"]),
                head,
                temperature=config["temperature"],
                encoder_name=config["encoder"],
                batch_size=batch_size,
            )

    def save(self, folder: str | Path) -> None:
        """Write the head and what is needed to use it; the encoder by name only."""
        folder = Path(folder)
        save_tensors(self.head.state_dict(), folder / WEIGHTS)
        facts = {"encoder": self.encoder_name, "temperature": self.temperature}
        write_model_settings(folder, CONFIG, facts | self.head.shape, weights=WEIGHTS)

    def embed(self, sentences: Sequence[str]) -> Tensor:
        """[N, D]: unit vectors, on the CPU."""
        return torch.stack(self._embeddings(sentences))

    def _encode(self, sentences: list[str]) -> list[Tensor]:
        vectors = self.encoder.encode(
            sentences,
            batch_size=len(sentences),
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return list(torch.tensor(vectors))

    @torch.no_grad()
    def logits(self, pairs: Sequence[tuple[str, str]]) -> Tensor:
        """[B], calibrated: the sigmoid of them is the probability."""
        if not pairs:
            return torch.zeros(0)
        self.head.eval()
        u_BD = self.embed([first for first, _ in pairs])
        v_BD = self.embed([second for _, second in pairs])
        device = next(self.head.parameters()).device
        return self.head(u_BD.to(device), v_BD.to(device)).cpu() / self.temperature

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [float(p) for p in self.logits(pairs).sigmoid()]
