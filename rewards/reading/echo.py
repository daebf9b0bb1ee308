"""How much of a sentence is copied from the post that it answers."""

from __future__ import annotations

import re
from typing import Final

WORD: Final = re.compile(r"[a-z']+")
GRAM = 3


def echoed(post: str, sentence: str) -> float:
    """The share of a sentence's neighbouring words, three at a time, that stand in the post, after
    the first and the second person are made one."""
    own, theirs = _grams(sentence), set(_grams(post))
    return sum(gram in theirs for gram in own) / len(own) if own else 0.0


PERSONS: Final = {"you": "i", "me": "i", "your": "my", "yours": "mine", "you're": "i'm"}
PERSONS_MORE: Final = {"yourself": "myself", "you've": "i've", "am": "are", "was": "were"}


def _grams(text: str) -> list[tuple[str, ...]]:
    known = PERSONS | PERSONS_MORE
    words = [known.get(word, word) for word in WORD.findall(text.lower().replace("’", "'"))]
    return [tuple(words[i : i + GRAM]) for i in range(len(words) - GRAM + 1)]
