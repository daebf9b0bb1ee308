"""The audit: what would a reward pay a stock sentence in place of what the person really said?

The sentence that carries the empathy of a labelled exchange is taken out of the reply. Then it, and
other sentences, are put back at the same place, and the reward is asked what it pays for each:

    matched        the real sentence
    stock          kind sentences that fit everybody
    nonsense       sentences that fit nobody
    wrong_post     the real sentence of another post, drawn at random
    similar_post   the real sentence of the most similar other post

A reward that pays any of the others more teaches an agent to say that instead. No models in here:
the rewards come as an argument. What their scores amount to is in wins.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rewards.audit.stock import is_stock, plain_words
from rewards.identifiers.seed_sentences import SEEDS
from rewards.reward_sum import RewardSum, Scores
from rewriting.carriers import Carrier, carriers, suitable, without
from rewriting.data.columns import column_names, data_columns
from rewriting.edits import Edit, apply_edit
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.seeds import derive_seed
from rewriting.sentences import Sentences, split_sentences

MIN_WORDS: Final = 3
MAX_WORDS: Final = 40
KINDS: Final = ("matched", "stock", "nonsense", "wrong_post", "similar_post")


@dataclass(frozen=True, slots=True)
class Item:
    """A labelled exchange, the sentence that carries its empathy, and the reply without it."""

    exchange: Exchange
    carrier: Carrier
    rest: Sentences

    @property
    def reply(self) -> str:
        """The reply without the carrier; empty where the carrier was all of it."""
        return str(self.rest)

    def with_sentence(self, sentence: str) -> str:
        """The reply with a sentence at the carrier's place."""
        return str(apply_edit(self.rest, Edit.insert(self.carrier.place, sentence)))


@dataclass(frozen=True, slots=True)
class Round:
    """One sentence for every item, to be scored in one call. kind: one of KINDS."""

    kind: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """What was put in place of the carriers, and what the rewards paid for it, round by round."""

    items: Sequence[Item]
    rounds: Sequence[Round]
    scores: Sequence[Scores]

    def of(self, kind: str) -> list[tuple[Round, Scores]]:
        pairs = zip(self.rounds, self.scores, strict=True)
        return [(one, scores) for one, scores in pairs if one.kind == kind]

    def one(self, kind: str) -> Scores:
        """The scores of a kind that has a single round."""
        ((_, scores),) = self.of(kind)
        return scores


def audit_items(exchanges: Iterable[Exchange]) -> list[Item]:
    """The first exchange of each seeker post that has a carrier to take out.

    Of several carriers the one of the highest level, and of those the first, is taken. Only prose
    of 3 to 40 words counts.
    """
    items: dict[str, Item] = {}
    for exchange in exchanges:
        post = exchange.seeker_id or " ".join(exchange.seeker_post.lower().split())
        carrier = None if post in items else strongest(carriers(exchange))
        if carrier is not None:
            rest = without(split_sentences(exchange.response_post), {carrier.place})
            items[post] = Item(exchange, carrier, rest)
    return list(items.values())


def strongest(carrying: Iterable[Carrier]) -> Carrier | None:
    """The carrier of the highest level, the first in the reply; None where there is no prose."""
    usable = [carrier for carrier in carrying if suitable(carrier.text, MIN_WORDS, MAX_WORDS)]
    return min(usable, key=lambda carrier: (-carrier.level, carrier.place), default=None)


def rounds_of(
    items: Sequence[Item], stock: Sequence[str], nonsense: Sequence[str], seed: int = 0
) -> list[Round]:
    """Everything that is put in place of the carriers: kind by kind, a sentence for every item."""
    if len(items) < 2:
        raise UserError(
            f"an audit compares the sentences of at least two seeker posts; here {len(items)} has "
            "a sentence that a rationale covers."
        )
    return [
        Round("matched", tuple(item.carrier.text for item in items)),
        *(Round("stock", (sentence,) * len(items)) for sentence in stock),
        *(Round("nonsense", (sentence,) * len(items)) for sentence in nonsense),
        Round("wrong_post", tuple(items[row].carrier.text for row in drawn_posts(items, seed))),
        Round("similar_post", tuple(items[row].carrier.text for row in similar_posts(items))),
    ]


def drawn_posts(items: Sequence[Item], seed: int) -> list[int]:
    """For each item another one, drawn with the seed."""
    return [
        random.Random(derive_seed(seed, item.exchange.seeker_post)).choice(others(items, row))
        for row, item in enumerate(items)
    ]


def similar_posts(items: Sequence[Item]) -> list[int]:
    """For each item the other one whose post is most similar: TF-IDF cosine, the first of equals.

    What is similar is a matter of words here, so that no encoder is asked that a reward may use.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    # A post without a word, such as an emoji, is a word itself: no vocabulary may be empty.
    vectorizer = TfidfVectorizer(analyzer=lambda post: plain_words(post) or [post])
    vectors_NV = vectorizer.fit_transform([item.exchange.seeker_post for item in items])
    cosines_NN = (vectors_NV @ vectors_NV.T).toarray()
    return [
        max(others(items, row), key=lambda other: (cosines_NN[row, other], -other))
        for row in range(len(items))
    ]


def others(items: Sequence[Item], row: int) -> list[int]:
    """The other items; those with the very same sentence only where there are no different ones."""
    own = plain_words(items[row].carrier.text)
    elsewhere = [other for other in range(len(items)) if other != row]
    different = [o for o in elsewhere if plain_words(items[o].carrier.text) != own]
    return different or elsewhere


def score_rounds(
    rewards: RewardSum,
    items: Sequence[Item],
    rounds: Sequence[Round],
    advance: Callable[[int], Any] = lambda rows: None,
) -> Audit:
    """Ask the rewards what they pay in every round. advance: is told of the rows that are done.

    A round is one call: a term that compares the rows of a call sees everybody get the sentence.
    Terms with a `scale` are measured in the standard deviations of all rounds together, which
    takes a first pass over them.
    """
    passes = 2 if rewards.moments else 1
    scores: list[Scores] = []
    for number in range(passes):
        scores = []
        for one in rounds:
            update = passes == 2 and number == 0
            scores.append(rewards.score(**columns(items, one.sentences), update=update))
            advance(len(items) if number == passes - 1 else 0)
    return Audit(items, rounds, scores)


def columns(items: Sequence[Item], sentences: Sequence[str]) -> dict[str, list[Any]]:
    """What a reward is called with: as if an edit policy had inserted the sentences.

    As in training, every other column of the data is among it, such as the levels of the reply.
    """
    exchanges = [item.exchange for item in items]
    pairs = zip(items, sentences, strict=True)
    return data_columns(exchanges, column_names(exchanges)) | {
        "completions": [item.with_sentence(sentence) for item, sentence in pairs],
        "response_post": [item.reply for item in items],
        "sentence": list(sentences),
    }


def stock_carriers(items: Sequence[Item], stock: Sequence[str]) -> list[bool]:
    """For each item, whether what the person really said is a stock sentence itself."""
    known = [*stock, *(seed for seeds in SEEDS.values() for seed in seeds)]
    return [is_stock(item.carrier.text, known) for item in items]
