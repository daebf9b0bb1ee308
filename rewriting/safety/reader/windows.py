"""What the crisis reader gets to see of a text: windows of sentences, as they stand and as they may
have been meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rewriting.safety.rules.spelling import folded, plain_words, tricky_words

WINDOW = 90
"""Words that are read at once. The messages it was trained on have 20 to 90."""
SENTENCE = re.compile(r"[^.!?…\n]*[.!?…\n]+[\"'”’)\]]*\s*|[^.!?…\n]+")


def readings(text: str) -> list[str]:
    """The windows of a text without look-alike letters; where words were hidden by spelling
    tricks, also those of the words that were meant."""
    plain = folded(text)
    found = windows(plain)
    meant = tricky_words(plain)
    if meant != plain_words(plain):
        found += windows(meant)
    return list(dict.fromkeys(found))


def windows(text: str, size: int = WINDOW) -> list[str]:
    """A text in runs of whole sentences of at most `size` words, each begun in the middle of the
    one before. A sentence that is longer is cut. A text that fits is one window."""
    if len(text.split()) <= size:
        return [text]
    pieces = [piece for sentence in SENTENCE.findall(text) for piece in _cut(sentence, size // 2)]
    counts = [len(piece.split()) for piece in pieces]
    found, start = [], 0
    while start < len(pieces):
        end = _reach(counts, start, size)
        found.append(" ".join(piece.strip() for piece in pieces[start:end]))
        if end == len(pieces):
            break
        start = max(start + 1, _reach(counts, start, size // 2))
    return found


def _cut(sentence: str, size: int) -> list[str]:
    """A sentence in pieces of at most `size` words."""
    words = sentence.split()
    if len(words) <= size:
        return [sentence] if words else []
    return [" ".join(words[start : start + size]) for start in range(0, len(words), size)]


def _reach(counts: Sequence[int], start: int, size: int) -> int:
    """Where a run of pieces ends that begins at `start` and has at most `size` words."""
    end, words = start + 1, counts[start]
    while end < len(counts) and words + counts[end] <= size:
        words += counts[end]
        end += 1
    return end
