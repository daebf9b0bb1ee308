"""A rewrite as changes that can be taken or left one by one.

    changes("ok. Study more.", "That sounds hard. ok. Study more.")
    # [Change("", "That sounds hard. ", True), Change("ok. ", "ok. ", False), …]

Found by comparing the sentences, so that it works for policies that edit and for those that write
the whole reply anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from rewriting.sentences import split_sentences


@dataclass(frozen=True, slots=True)
class Change:
    """A sentence before and after, each with the white space behind it.

    edited: whether it is an edit. Where it is none, before and after still differ in what joining
    changes beside an edit: a full stop, white space. Empty before: inserted; empty after: left out.
    """

    before: str
    after: str
    edited: bool

    def row(self) -> dict[str, Any]:
        return {"before": self.before, "after": self.after, "edited": self.edited}


def changes(before: str, after: str) -> list[Change]:
    """The sentences of both texts side by side.

    All `before` together are the one text, all `after` the other, to the last character.
    """
    old, new = _pieces(before), _pieces(after)
    matcher = SequenceMatcher(None, [*map(_key, old)], [*map(_key, new)], autojunk=False)
    return [
        Change(first or "", second or "", tag != "equal")
        for tag, a, b, c, d in matcher.get_opcodes()
        for first, second in zip_longest(old[a:b], new[c:d])
    ]


def _pieces(text: str) -> list[str]:
    """Each sentence with the white space behind it, the first one also with what is before it."""
    sentences = split_sentences(text)
    if not sentences.texts:
        return [text] if text else []
    ends = zip(sentences.texts, sentences.gaps[1:], strict=True)
    first, *others = [sentence + gap for sentence, gap in ends]
    return [sentences.gaps[0] + first, *others]


def _key(piece: str) -> str:
    """A sentence without what joining may change: white space and the last full stop."""
    return piece.strip().rstrip(".")
