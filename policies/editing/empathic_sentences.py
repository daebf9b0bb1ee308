"""Which of the sentences that carry empathy (rewriting/carriers.py) a policy may learn to say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from policies.editing.prompt import ENDS
from rewriting.carriers import Carrier, suitable
from rewriting.exchange import Exchange
from rewriting.sentences import split_sentences

INNER_END: Final = re.compile(rf"[{''.join(sorted(ENDS))}][\"'”’)\]]*(?=\s)")
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


def first_sentence(text: str) -> str:
    """The text up to its first inner end of a sentence: a policy writes one at a time."""
    text = " ".join(text.split())
    end = INNER_END.search(text)
    return text[: end.end()] if end else text


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
