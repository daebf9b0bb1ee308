"""Which sentences of a response carry its empathy, and which of them a policy may learn to say."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from policies.edit_prompt import ENDS
from rewriting.exchange import Exchange
from rewriting.sentences import Sentences, split_sentences

MIN_OVERLAP: Final = 0.5
INNER_END: Final = re.compile(rf"[{''.join(sorted(ENDS))}][\"'”’)\]]*(?=\s)")
# Links, forums, markup, notes about the post itself, curses.
NOT_PROSE: Final = re.compile(
    r"https?:|www\.|\b/?[ru]/\w|[\[\]<>|*#^_~{}\\]|&\w+;|^edit\b|fuck|shit|\bwtf\b|\bop\b",
    re.IGNORECASE,
)
FIRST_PERSON: Final = re.compile(
    r"\b(i|i['’]?m|i['’]?ve|i['’]d|i['’]ll|me|my|mine|myself|we|our|us|same)\b", re.IGNORECASE
)
# What a peer says of themselves in speaking to the seeker: no story of their own life.
I_AM: Final = (
    "sorry|glad|happy|proud|here|sad|worried|listening|willing|rooting|sure|certain|sending|wishing"
    "|with you|thinking of you|excited for"
)
MODIFIERS: Final = (
    "can|do|just|also|really|truly|totally|completely|sincerely|definitely|only|don['’]?t|can['’]?t"
    "|want to|wanna"
)
I_DO: Final = (
    r"hope|understand|know\b(?! my)|hear|feel (?:for )?you|believe|care|imagine|relate|think|bet"
    "|feel (?:so |really )?(?:sorry|bad|sad) (?:for|that|to)|see (?:how|that|why|what)|guess|help"
    "|wish (?:you|it|things|this)|get (?:it|that)|love (?:you|your|that|this|it)|agree|empathi[sz]e"
    "|want (?:you|to (?:hear|know|help|let you))|appreciate|wonder|admire|respect|send|promise"
)
SPEAKING: Final = re.compile(
    rf"\b(?:i['’]?m|i am|i['’]ll be|i was)(?: \w+){{0,2}}? (?:{I_AM})"
    rf"|\bi(?: (?:{MODIFIERS}))* (?:{I_DO})"
    r"|\bi['’]?d (?:love|like|be happy|be glad) to (?:hear|listen|talk|help|know)"
    r"|\b(?:let|tell|message|pm|dm|talk to|text|trust|believe) (?:me|us)\b"
    r"|\bmy (?:heart|thoughts|prayers|love|inbox|friend|dms?|pms?|condolences|best wishes)\b"
    r"|\bsame (?:time|way|thing)\b",
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


def to_be_learnt(carrying: Sequence[Carrier]) -> list[Carrier]:
    """The first carrier of each mechanism; of strong mechanisms only, if there are any.

    One for each: an understanding said in ten sentences is one piece of empathy, not ten.
    """
    strongest = max((carrier.level for carrier in carrying), default=0)
    first: dict[str, Carrier] = {}
    for carrier in carrying:
        if carrier.level == strongest:
            first.setdefault(carrier.mechanism, carrier)
    return list({carrier.place: carrier for carrier in first.values()}.values())


def empathy_of(carrying: Sequence[Carrier]) -> int:
    """Total empathy of some sentences: the levels of the mechanisms that they carry."""
    return sum({carrier.mechanism: carrier.level for carrier in carrying}.values())


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


def first_sentence(text: str) -> str:
    """The text up to its first inner end of a sentence: a policy writes one at a time."""
    text = " ".join(text.split())
    end = INNER_END.search(text)
    return text[: end.end()] if end else text


def suitable(sentence: str, min_words: int, max_words: int) -> bool:
    """Whether a sentence is prose of a length that can be learnt."""
    return min_words <= len(sentence.split()) <= max_words and not NOT_PROSE.search(sentence)


def tells_own_story(sentence: str) -> bool:
    """Whether a sentence tells of its writer's own life: a first person who does more than speak.

    "I was there too" is strong empathy where it is true. A policy cannot know whether it is, and
    would learn to invent a life for the peer. Lists of English words, and rough.
    """
    return bool(FIRST_PERSON.search(SPEAKING.sub(" ", sentence)))


def weak_sentences(exchanges: Sequence[Exchange], min_words: int, max_words: int) -> list[str]:
    """Different sentences of responses without any empathy; questions could be explorations."""
    texts = [
        text
        for exchange in exchanges
        if exchange.empathy == 0
        for text in split_sentences(exchange.response_post).texts
        if suitable(text, min_words, max_words) and "?" not in text
    ]
    return list(dict.fromkeys(texts))


def without(sentences: Sentences, places: Collection[int]) -> Sentences:
    """The sentences without some of them, and without the white space after each of those."""
    kept = [place for place in range(len(sentences)) if place not in places]
    gaps = (sentences.gaps[0], *(sentences.gaps[place + 1] for place in kept))
    return Sentences(tuple(sentences.texts[place] for place in kept), gaps)
