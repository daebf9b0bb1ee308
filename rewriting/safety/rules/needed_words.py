"""Which words a phrase cannot do without: a text that lacks them need not be searched for it.

Hundreds of regular expressions are slow; a look at the words of a text rules most of them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

PREFIX = 4  # a stem such as suicid\w* is looked up by its first letters
WORD = re.compile(r"[a-z0-9]+")
PLURAL = re.compile(r"([a-z]+)([a-z])\?")
STEM = re.compile(rf"([a-z]{{{PREFIX}}})[a-z]*\\w[*+]")


def needed(element: str) -> frozenset[str] | None:
    """Words one of which stands in every text that an element matches; None if that is not known.

    A prefix is marked with a tilde.
    """
    inner = _without_brackets(element)
    alternatives = _split(inner, "|")
    if len(alternatives) > 1:
        sets = [needed(alternative) for alternative in alternatives]
        return frozenset().union(*(one for one in sets if one)) if all(sets) else None
    if " ?" in inner:  # the space may be missing: back ?flip
        return None
    parts = [found for part in _split(inner, " ") if (found := _part(part))]
    # The rarest part rules out most: one long word rather than many short ones.
    return min(parts, key=lambda words: (len(words), -min(map(len, words))), default=None)


def _part(part: str) -> frozenset[str] | None:
    if WORD.fullmatch(part):
        return frozenset([part])
    if plural := PLURAL.fullmatch(part):
        return frozenset([plural[1], plural[1] + plural[2]])
    if stem := STEM.fullmatch(part):
        return frozenset([stem[1] + "~"])
    if part.startswith("(") and _without_brackets(part) != part:
        return needed(part)
    return None


def _without_brackets(text: str) -> str:
    """The text without a pair of brackets around all of it."""
    while text.startswith("(") and text.endswith(")"):
        inner = text[3:-1] if text.startswith("(?:") else text[1:-1]
        if text.startswith("(?") and not text.startswith("(?:"):
            return text
        depth = 0
        for letter in inner:
            depth += (letter == "(") - (letter == ")")
            if depth < 0:
                return text
        text = inner
    return text


def _split(text: str, separator: str) -> list[str]:
    """The text at separators that stand outside all brackets."""
    depth, found = 0, [""]
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == separator and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


class Index:
    """For each of many phrases, which sets of words a text needs to touch."""

    def __init__(self, phrases: Sequence[Iterable[frozenset[str]]]) -> None:
        self.bits: dict[str, int] = {}
        self.masks: list[int] = []
        bit = 1
        for sets in phrases:
            mask = 0
            for words in sets:
                for word in words:
                    self.bits[word] = self.bits.get(word, 0) | bit
                mask |= bit
                bit <<= 1
            self.masks.append(mask)

    def possible(self, text: str) -> list[int]:
        """The numbers of the phrases that a text of plain words may hold."""
        seen = 0
        for word in set(text.split(" ")):
            seen |= self.bits.get(word, 0) | self.bits.get(word[:PREFIX] + "~", 0)
        return [number for number, mask in enumerate(self.masks) if mask & seen == mask]
