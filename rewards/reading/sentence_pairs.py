"""Pairs of sentences of one response, and of two: what a coherence model learns from.

Each pair of one response stands against up to three of two, which keep one of its sentences:

    random      a sentence of a response to any other seeker
    same_topic  of another response to the same seeker, or to one of the nearest other seekers
    nearest     one of the sentences of other seekers nearest to the sentence it replaces

Against random sentences alone, a model learns topics and no more. Hard ones are partly mislabelled,
since "I am sorry" fits many responses: a calibrated model then says so by a middling probability.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import torch
from torch import Tensor

from rewriting.data.split import normalised
from rewriting.exchange import Exchange
from rewriting.sentences import split_sentences

Embed = Callable[[Sequence[str]], Tensor]

KINDS: Final[Mapping[str, float]] = {"random": 0.5, "same_topic": 0.25, "nearest": 0.25}
"""The kinds of negatives and their weights; together they weigh as much as the positive."""

NEIGHBOURS = 10
CHUNK = 1024


@dataclass(frozen=True, slots=True)
class SentencePair:
    """Two sentences, whether they are of one response, where the second comes from, a weight."""

    first: str
    second: str
    same: bool
    kind: str
    weight: float


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    response: int
    seeker: int


def make_pairs(
    exchanges: Sequence[Exchange], embed: Embed, *, pairs_per_response: int = 4, seed: int = 0
) -> list[SentencePair]:
    """Positive pairs of the responses with two sentences or more, and the negatives of each.

    embed: texts → unit vectors [N, D], by which neighbours are found.
    """
    pool = _Pool(exchanges, embed)
    if pool.num_seekers < 2:
        return []
    generator = random.Random(seed)
    found = []
    for places in pool.by_response.values():
        pairs = list(combinations(places, 2))
        for a, b in generator.sample(pairs, min(pairs_per_response, len(pairs))):
            kept, replaced = generator.sample((a, b), 2)
            others = {kind: pool.other(kind, kept, replaced, generator) for kind in KINDS}
            texts = {kind: text for kind, text in others.items() if text is not None}
            if not texts:
                continue
            first, second = pool.sentences[a].text, pool.sentences[b].text
            found.append(SentencePair(first, second, True, "same", 1.0))
            total = sum(KINDS[kind] for kind in texts)
            for kind, text in texts.items():
                own = pool.sentences[kept].text
                found.append(SentencePair(own, text, False, kind, KINDS[kind] / total))
    return found


class _Pool:
    """All sentences, by response and by seeker, and who is near whom."""

    def __init__(self, exchanges: Sequence[Exchange], embed: Embed) -> None:
        self.sentences, posts = _sentences(exchanges)
        self.num_seekers = len(posts)
        self.by_response, self.by_seeker = defaultdict(list), defaultdict(list)
        for place, sentence in enumerate(self.sentences):
            self.by_response[sentence.response].append(place)
            self.by_seeker[sentence.seeker].append(place)
        if self.num_seekers > 1:
            self.near_sentences = _neighbours(embed([s.text for s in self.sentences]))
            self.near_seekers = _neighbours(embed(posts))

    def other(self, kind: str, kept: int, replaced: int, generator: random.Random) -> str | None:
        """A sentence of another response, or None where none of this kind was found."""
        own = self.sentences[kept]
        if kind == "random":
            places = generator.choices(range(len(self.sentences)), k=8)
        elif kind == "same_topic":
            seeker = generator.choice([own.seeker, generator.choice(self.near_seekers[own.seeker])])
            places = self.by_seeker[seeker]
        else:
            places = self.near_sentences[replaced]
        known = {normalised(own.text), normalised(self.sentences[replaced].text)}
        candidates = [self.sentences[place] for place in places]
        texts = [
            sentence.text
            for sentence in candidates
            if sentence.response != own.response
            and (kind == "same_topic" or sentence.seeker != own.seeker)
            and normalised(sentence.text) not in known
        ]
        return generator.choice(texts) if texts else None


def _sentences(exchanges: Sequence[Exchange]) -> tuple[list[_Sentence], list[str]]:
    """The sentences of all responses that have two or more, and the seeker posts by number."""
    seekers: dict[str, int] = {}
    posts: list[str] = []
    sentences = []
    for response, exchange in enumerate(exchanges):
        texts = [text for text in split_sentences(exchange.response_post).texts if _has_words(text)]
        if len(texts) < 2:
            continue
        key = exchange.seeker_id or normalised(exchange.seeker_post)
        if key not in seekers:
            seekers[key] = len(seekers)
            posts.append(exchange.seeker_post)
        sentences += [_Sentence(text, response, seekers[key]) for text in texts]
    return sentences, posts


def _has_words(text: str) -> bool:
    return any(character.isalpha() for character in text)


def _neighbours(vectors_ND: Tensor) -> list[list[int]]:
    """For each unit vector the places of the nearest others, nearest first."""
    count = min(NEIGHBOURS + 1, len(vectors_ND))
    found: list[list[int]] = []
    for chunk in vectors_ND.split(CHUNK):
        nearest = torch.topk(chunk @ vectors_ND.T, count, dim=-1).indices
        for row in nearest.tolist():
            own = len(found)
            found.append([place for place in row if place != own][:NEIGHBOURS])
    return found
