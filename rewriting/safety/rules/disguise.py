"""Explicit phrases in disguise: w@n7 70 d!3, k-i-l-l_m-y-s-e-l-f, iwanttodie.

Where a text shows signs of a disguise, the letters around it are read without spaces, with
look-alike signs taken as one letter and no letter twice in a row, and compared with the letters of
the explicit phrases. A letter may be wrong, in long phrases two. What is found has to touch a sign
of disguise and to begin and end with a word, so that "this skill myself" is not "kill myself".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from rewriting.safety.rules.lexicon import lexicon
from rewriting.safety.rules.spelling import APOSTROPHES, OUTSIDE

ODD = re.compile(
    r"[a-z][^a-z0-9\s]+[a-z0-9]"  # a sign inside a word
    r"|[a-z][0-9]|[0-9][a-z]|[@$!|+€<(*][a-z0-9]|[a-z][@$!|+€<][^\s.]|[a-z][@$+€]$|[a-z]\*"
    r"|([a-z])\1\1"
)
REACH = 5  # words on both sides of a sign that may belong to a disguise
LONG_WORD = 9
SIGNS = str.maketrans("l1!0345789@$+€¡<(", "iiioeastbgasteicc")
BAR = str.maketrans("|", "i")


def disguised(text: str) -> str | None:
    """The explicit phrase that a folded text hides, if it hides one."""
    chunks = APOSTROPHES.sub("", text).split()
    for word in dict.fromkeys(chunk.strip(OUTSIDE) for chunk in chunks):
        if len(word) >= LONG_WORD and (phrase := _in_word(word)):
            return phrase
    odd = [_is_odd(chunk) for chunk in chunks]
    for part in _parts(odd):
        for bar_is_letter in (True, False):
            letters = Letters.of(chunks[part], odd[part], bar_is_letter)
            if phrase := letters.hidden():
                return phrase
    return None


@dataclass(frozen=True, slots=True)
class Letters:
    """The letters of some words in a row, none twice, and what is known of each."""

    text: str
    first: list[bool]
    """Whether a phrase may begin here: at a word's first letter, anywhere in a disguised one."""
    last: list[bool]
    odd: list[bool]

    @classmethod
    def of(cls, chunks: list[str], odd: list[bool], bar_is_letter: bool = False) -> Letters:
        letters = cls("", [], [], [])
        found: list[str] = []
        for chunk, is_odd in zip(chunks, odd, strict=True):
            word = chunk.translate(BAR if bar_is_letter else {}).translate(SIGNS)
            kept = [letter for letter in word if "a" <= letter <= "z"]
            for place, letter in enumerate(kept):
                begins, ends = is_odd or place == 0, is_odd or place == len(kept) - 1
                if found and found[-1] == letter:
                    letters.first[-1] |= begins
                    letters.last[-1] |= ends
                    letters.odd[-1] |= is_odd
                    continue
                found.append(letter)
                letters.first.append(begins)
                letters.last.append(ends)
                letters.odd.append(is_odd)
        return cls("".join(found), letters.first, letters.last, letters.odd)

    def hidden(self) -> str | None:
        for core, phrase in _cores().items():
            for start, end in near(core, self.text):
                if self.first[start] and self.last[end - 1] and any(self.odd[start:end]):
                    return phrase
        return None


@cache
def _cores() -> dict[str, str]:
    """Explicit phrases: letters in a row → phrase."""
    return {Letters.of([phrase], [True]).text: phrase for phrase in lexicon().explicit}


def near(core: str, text: str) -> Iterator[tuple[int, int]]:
    """Where in a text something stands that differs from the core in few letters: start and end.

    With at most k letters wrong, or swapped, one of 2 k + 1 pieces stands there as it is.
    """
    from rapidfuzz.distance import OSA

    wrong = (len(core) >= 8) + (len(core) >= 11)
    size = -(-len(core) // (2 * wrong + 1))
    for offset in range(0, len(core), size):
        piece = core[offset : offset + size]
        at = text.find(piece)
        while at >= 0:
            for start in range(max(0, at - offset - wrong), at - offset + wrong + 1):
                for end in range(start + len(core) - wrong, start + len(core) + wrong + 1):
                    if start < end <= len(text) and (
                        OSA.distance(core, text[start:end], score_cutoff=wrong) <= wrong
                    ):
                        yield start, end
            at = text.find(piece, at + 1)


def _parts(odd: list[bool]) -> Iterator[slice]:
    """The parts of a text around its signs of disguise."""
    start = end = 0
    for place in (place for place, is_odd in enumerate(odd) if is_odd):
        if end and place - REACH > end:
            yield slice(start, end)
            end = 0
        start = start if end else max(0, place - REACH)
        end = min(len(odd), place + REACH + 1)
    if end:
        yield slice(start, end)


def _is_odd(chunk: str) -> bool:
    if len(chunk) == 1:
        return chunk not in "ai&-–—"
    return bool(ODD.search(chunk.strip(OUTSIDE)))


@lru_cache(maxsize=20_000)
def _in_word(chunk: str) -> str | None:
    return Letters.of([chunk[:200]], [True]).hidden()
