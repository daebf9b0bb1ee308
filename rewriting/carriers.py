"""Which sentences of a labelled response carry its empathy, and the response without them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from rewriting.exchange import Exchange
from rewriting.sentences import Sentences, split_sentences

MIN_OVERLAP: Final = 0.5
# Links, forums, markup, notes about the post itself, curses.
NOT_PROSE: Final = re.compile(
    r"https?:|www\.|\b/?[ru]/\w|[\[\]<>|*#^_~{}\\]|&\w+;|^edit\b|fuck|shit|\bwtf\b|\bop\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Carrier:
    """A sentence that carries a mechanism, at the level that the response has in it."""

    place: int
    text: str
    mechanism: str
    level: int


def carriers(exchange: Exchange) -> list[Carrier]:
    """The sentences of a response that carry empathy, for each mechanism, in their order."""
    texts = split_sentences(exchange.response_post).texts
    return [
        Carrier(place, text, mechanism, label.level)
        for mechanism, label in exchange.labels.items()
        if label.level
        for place, text in enumerate(texts)
        if any(overlap(rationale, text) >= MIN_OVERLAP for rationale in label.rationales)
    ]


def overlap(rationale: str, sentence: str) -> float:
    """The share of a sentence that a rationale covers: the longest piece that both have.

    White space and case aside, in which annotators' copies differ from the text.
    """
    a, b = (" ".join(text.lower().split()) for text in (rationale, sentence))
    if not a or not b:
        return 0.0
    if a in b or b in a:
        return min(len(a) / len(b), 1.0)
    match = SequenceMatcher(None, a, b, autojunk=False).find_longest_match()
    return match.size / len(b)


def suitable(sentence: str, min_words: int, max_words: int) -> bool:
    """Whether a sentence is prose of a usable length."""
    return min_words <= len(sentence.split()) <= max_words and not NOT_PROSE.search(sentence)


def without(sentences: Sentences, places: Collection[int]) -> Sentences:
    """The sentences without some of them, and without the white space after each of those."""
    kept = [place for place in range(len(sentences)) if place not in places]
    gaps = (sentences.gaps[0], *(sentences.gaps[place + 1] for place in kept))
    return Sentences(tuple(sentences.texts[place] for place in kept), gaps)
