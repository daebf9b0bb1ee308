"""Splitting a text into sentences, and joining them again without losing a character.

A `Sentences` holds the sentences and the white space around each. Joined unedited they give back
the text exactly, by construction; edited, only the places next to the edit change.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import zip_longest
from typing import Protocol

STOPS = ".!?…。！？"
"""What ends a sentence."""
PAUSES = ":;,"
"""What may stand at the end of a line in place of a stop."""
CLOSERS = frozenset("\"'”’)]}»*_~")
LIST_ITEM = re.compile(r"\s*(?:[-*•–]|\(?\d{1,2}[.)])\s")
LINE = re.compile(r"[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
BREAK = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")
NO_STOP = re.compile(r"(?:https?://|www\.)\S+$|(?:<3|[:;=xX]-?[DpPoO3])$")
# pysbd reads "wow!!!! no way" as one sentence.
SHOUT = re.compile(r"(?<=[!?]{2})\s+(?=\S)")
# Where a long line may be cut for pysbd: the end of a sentence beyond doubt, or any white space.
SURE_END = re.compile(r"(?:(?<=[a-z]{3}\.)|(?<=[!?]))\s+(?=[A-Z])")
SPACE = re.compile(r"\s+(?=\S)")
BLOCK = 2000  # characters; pysbd takes four times as long for a line twice as long


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences and the gaps between them: gaps[0] texts[0] gaps[1] … texts[n-1] gaps[n]."""

    texts: tuple[str, ...]
    gaps: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.gaps) != len(self.texts) + 1:
            raise ValueError(f"{len(self.texts)} sentences need {len(self.texts) + 1} gaps")

    def __len__(self) -> int:
        return len(self.texts)

    def __str__(self) -> str:
        pairs = zip_longest(self.gaps, self.texts, fillvalue="")
        return "".join(gap + text for gap, text in pairs)

    def with_inserted(self, position: int, sentence: str) -> Sentences:
        """A sentence more, before `position`; the rest keeps its words and its line breaks."""
        before, after = self.texts[:position], self.texts[position:]
        new = sentence.strip()
        if after:
            new = _closed(new)
            gap = self.gaps[position]
            new_gaps = (gap, " ")
            if LIST_ITEM.match(after[0]) and (not position or BREAK.search(gap)):
                new_gaps = (gap, gap if BREAK.search(gap) else "\n" + gap)
        elif before:
            tail = self.gaps[position]
            new_gaps = ("\n" if LIST_ITEM.match(_last_line(before, self.gaps)) else " ", tail)
        else:
            new_gaps = (self.gaps[0], "")
        if before and not BREAK.search(new_gaps[0]):
            before = (*before[:-1], _closed(before[-1]))
        gaps = (*self.gaps[:position], *new_gaps, *self.gaps[position + 1 :])
        return Sentences((*before, new, *after), gaps)

    def with_replaced(self, position: int, sentence: str) -> Sentences:
        """Another sentence in place of the one at `position`, in the same white space."""
        new = sentence.strip()
        if position < len(self) - 1 and not BREAK.search(self.gaps[position + 1]):
            new = _closed(new)
        marker = LIST_ITEM.match(self.texts[position])
        if marker and not LIST_ITEM.match(new):
            new = marker.group() + new
        return Sentences((*self.texts[:position], new, *self.texts[position + 1 :]), self.gaps)


@lru_cache(maxsize=16_384)
def split_sentences(text: str) -> Sentences:
    """Split a text into sentences; every line break ends one. `str()` of it is the text again."""
    starts = [start for line in LINE.finditer(text) for start in _starts(line)]
    if not starts:
        return Sentences((), (text,))
    pieces = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    texts = tuple(piece.rstrip() for piece in pieces)
    gaps = (
        text[: starts[0]],
        *(piece[len(kept) :] for piece, kept in zip(pieces, texts, strict=True)),
    )
    return Sentences(texts, gaps)


def _starts(line: re.Match[str]) -> list[int]:
    """Where in the whole text the sentences of one line start."""
    body = line.group()
    if not body.strip():
        return []
    first = len(body) - len(body.lstrip())
    starts = {first} | {gap.end() for gap in SHOUT.finditer(body)}
    for start, end in _blocks(body, first):
        if SURE_END.match(body, len(body[:start].rstrip())):
            starts.add(start)
        cursor = start
        for segment in _segmenter().segment(body[start:end]):
            words = segment.strip()
            found = body.find(words, cursor, end) if words else -1
            if found < 0:  # pysbd changed a character: no boundary here rather than a lost letter
                continue
            # A boundary needs white space, so that links and "e.g.this" stay whole.
            if found > start and body[found - 1].isspace():
                starts.add(found)
            cursor = found + len(words)
    return [line.start() + start for start in sorted(starts) if not body[start].isspace()]


def _blocks(body: str, start: int) -> Iterator[tuple[int, int]]:
    """A line in blocks for pysbd, which is slow on long ones; an ordinary line is one block.

    A block ends where a sentence does, where that can be seen; else between words; else anywhere.
    """
    while len(body) - start > 2 * BLOCK:
        near, far = start + BLOCK, start + 2 * BLOCK
        cut = SURE_END.search(body, near, far) or SPACE.search(body, near, far)
        end = cut.end() if cut else far
        yield start, end
        start = end
    yield start, len(body)


class _Segmenter(Protocol):
    def segment(self, text: str) -> list[str]: ...


@cache
def _segmenter() -> _Segmenter:
    import pysbd  # imported late: its rules take a while to compile

    return pysbd.Segmenter(language="en", clean=False)


def _closed(sentence: str) -> str:
    """The sentence with a full stop, unless it ends in punctuation, an emoji or a link."""
    core = sentence.rstrip("".join(CLOSERS) + "\ufe0f\u200d") or sentence
    last = core[-1:]
    if last in STOPS + PAUSES or not (last.isalnum() or unicodedata.category(last or " ") == "Mn"):
        return sentence
    if NO_STOP.search(sentence):
        return sentence
    return sentence + "."


def _last_line(texts: tuple[str, ...], gaps: tuple[str, ...]) -> str:
    """The first sentence on the line that the last sentence stands on."""
    first = len(texts) - 1
    while first > 0 and not BREAK.search(gaps[first]):
        first -= 1
    return texts[first]
