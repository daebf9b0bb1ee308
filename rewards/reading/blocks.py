"""What the reader is trained on: blocks of answers to different posts, with decoys among them.

Everything in a block is compared with everything else in it, so a block, not a pair, is the row of
training: how a batch is cut, or shared by processes, then changes no loss.

A decoy is a sentence that is nobody's answer: stock sympathy, a stock question, nonsense, an
everyday remark, advice, an insult. A `misfit` is a decoy for one post alone: right in topic, wrong
in feeling or in a detail.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rewriting.carriers import carriers, suitable
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from rewriting.sentences import split_sentences

Levels = tuple[int, ...]
"""A level for each mechanism, in the order of MECHANISMS."""

KIND_LEVELS: Final[Mapping[str, Levels]] = {
    "reaction_strong": (2, 0, 0),
    "interpretation_strong": (0, 2, 0),
    "question_strong": (0, 0, 2),
    "reaction_weak": (1, 0, 0),
    "interpretation_weak": (0, 1, 0),
    "question_weak": (0, 0, 1),
    "nonsense": (0, 0, 0),
    "hurtful": (0, 0, 0),
    "advice": (0, 0, 0),
    "echo": (0, 0, 0),
}
"""What a sentence of the counterfactuals shows by its form. Those that miss their post
(wrong_feeling, wrong_detail) have the form of empathy and are not listed."""

STRONG: Final = ("reaction_strong", "interpretation_strong", "question_strong")
MISFITS: Final = ("wrong_feeling", "wrong_detail", "hurtful", "advice")
DECOYS: Final[Mapping[str, int]] = {
    "question_weak": 6,
    "reaction_weak": 4,
    "interpretation_weak": 5,
    "nonsense": 6,
    "hurtful": 2,
    "advice": 2,
}
"""How many decoys of each kind a block has."""
EVERYDAY, CALM_POSTS, MISFITS_OF_POST = 3, 8, 2


@dataclass(frozen=True, slots=True)
class Answer:
    """A sentence that somebody said to a post, and its levels where they are known."""

    post: str
    sentence: str
    levels: Levels | None = None
    misfits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Answers to different posts, decoys with their levels, and posts that call for no empathy."""

    answers: tuple[Answer, ...]
    decoys: tuple[tuple[str, Levels], ...]
    calm_posts: tuple[str, ...] = ()


@dataclass(slots=True)
class Material:
    """Where blocks are drawn from. `sources` maps a share to answers; the shares add up to 1."""

    sources: Sequence[tuple[float, Sequence[Answer]]] = ()
    decoys: dict[str, list[str]] = field(default_factory=dict)
    everyday: list[str] = field(default_factory=list)
    calm_posts: list[str] = field(default_factory=list)


def make_blocks(material: Material, count: int, size: int, seed: int) -> list[Block]:
    """So many blocks of `size` answers, no two of a block to the same post."""
    posts = {answer.post for _, answers in material.sources for answer in answers}
    lacking = {
        "posts with answers": (len(posts), size),
        "everyday sentences": (len(material.everyday), EVERYDAY),
        "calm posts": (len(material.calm_posts), CALM_POSTS),
    }
    for name, (there, needed) in lacking.items():
        if there < needed:
            raise UserError(f"a block needs {needed} {name}; there are {there}. Give more data.")
    generator = random.Random(seed)
    return [_block(material, size, generator) for _ in range(count)]


def _block(material: Material, size: int, generator: random.Random) -> Block:
    shares = [share for share, _ in material.sources]
    found: dict[str, Answer] = {}
    while len(found) < size:
        (source,) = generator.choices([answers for _, answers in material.sources], shares)
        answer = generator.choice(source)
        misfits = generator.sample(answer.misfits, min(MISFITS_OF_POST, len(answer.misfits)))
        found.setdefault(answer.post, replace(answer, misfits=tuple(misfits)))
    decoys = [
        (generator.choice(material.decoys[kind]), KIND_LEVELS[kind])
        for kind, number in DECOYS.items()
        for _ in range(number)
    ]
    decoys += [(text, (0, 0, 0)) for text in generator.sample(material.everyday, EVERYDAY)]
    calm = generator.sample(material.calm_posts, CALM_POSTS)
    return Block(tuple(found.values()), tuple(decoys), tuple(calm))


def labelled_answers(exchanges: Sequence[Exchange]) -> list[Answer]:
    """Every sentence of labelled responses, with the levels that its rationales give it."""
    return [
        Answer(exchange.seeker_post, " ".join(text.split()), levels)
        for exchange in exchanges
        if exchange.empathy is not None
        for text, levels in sentence_levels(exchange)
        if suitable(text, 2, 40)
    ]


def sentence_levels(exchange: Exchange) -> list[tuple[str, Levels]]:
    """The sentences of a labelled response, each with its levels."""
    levels: dict[int, dict[str, int]] = {}
    for carrier in carriers(exchange):
        levels.setdefault(carrier.place, {})[carrier.mechanism] = carrier.level
    return [
        (text, tuple(levels.get(place, {}).get(mechanism, 0) for mechanism in MECHANISMS))
        for place, text in enumerate(split_sentences(exchange.response_post).texts)
    ]


def plain_answers(exchanges: Sequence[Exchange]) -> list[Answer]:
    """The sentences of responses without labels."""
    return [
        Answer(exchange.seeker_post, " ".join(text.split()))
        for exchange in exchanges
        for text in split_sentences(exchange.response_post).texts
        if suitable(text, 3, 40)
    ]


def counterfactual_answers(exchanges: Sequence[Exchange]) -> list[Answer]:
    """The fitting sentences of counterfactuals, each with the misfits of its post."""
    return [
        Answer(
            exchange.seeker_post,
            texts[kind],
            KIND_LEVELS[kind],
            tuple(texts[misfit] for misfit in MISFITS),
        )
        for exchange in exchanges
        for texts in [sentences_by_kind(exchange)]
        for kind in STRONG
    ]


def sentences_by_kind(exchange: Exchange) -> dict[str, str]:
    """The sentences of a row of `sample:counterfactuals`, by kind."""
    try:
        return {one["kind"]: one["text"] for one in exchange.extra["sentences"]}
    except (KeyError, TypeError) as error:
        raise UserError(
            f"exchange {exchange.id!r} is no counterfactual: it needs `sentences`, a list of "
            "objects with `kind` and `text` (rewriting/sample/COUNTERFACTUALS.md)."
        ) from error


def decoys_of(
    exchanges: Sequence[Exchange], stock: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    """The decoys in counterfactuals by kind, and further stock sentences."""
    rows = [sentences_by_kind(exchange) for exchange in exchanges]
    return {kind: [row[kind] for row in rows] + list(stock.get(kind, ())) for kind in DECOYS}
