"""Edits of a response: insert a sentence, replace one, or keep all as it is.

A response of n sentences has 2n + 2 edit positions. Numbered in one row, as a policy's position
head sees them, they are

    0 … n          insert before sentence 0 … n (n appends)
    n + 1 … 2n     replace sentence 0 … n - 1
    2n + 1         keep
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rewriting.sentences import Sentences, split_sentences


class Operation(StrEnum):
    INSERT = "insert"
    REPLACE = "replace"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit. `position` counts sentences at the time the edit is applied; keep has none."""

    operation: Operation
    position: int | None = None
    sentence: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "operation", Operation(self.operation))  # from a file, a text
        if self.operation is Operation.KEEP:
            if self.position is not None or self.sentence:
                raise ValueError("keep takes neither a position nor a sentence")
        elif self.position is None or self.position < 0:
            raise ValueError(f"{self.operation} needs a position of 0 or more, not {self.position}")
        elif not self.sentence.strip():
            raise ValueError(f"{self.operation} needs a sentence, and this one is blank")

    @classmethod
    def insert(cls, position: int, sentence: str) -> Edit:
        return cls(Operation.INSERT, position, sentence)

    @classmethod
    def replace(cls, position: int, sentence: str) -> Edit:
        return cls(Operation.REPLACE, position, sentence)

    @classmethod
    def keep(cls) -> Edit:
        return cls(Operation.KEEP)

    def index(self, num_sentences: int) -> int:
        """This edit's place among the 2n + 2 positions of a response of n sentences."""
        if self.position is None:
            return keep_position(num_sentences)
        last = num_sentences if self.operation is Operation.INSERT else num_sentences - 1
        if self.position > last:
            raise ValueError(
                f"{self.operation} at {self.position}, where there are {num_sentences} sentences"
            )
        return self.position + (0 if self.operation is Operation.INSERT else num_sentences + 1)

    @classmethod
    def at(cls, index: int, num_sentences: int, sentence: str = "") -> Edit:
        """The edit at a place among the 2n + 2 positions: the inverse of `index`."""
        if not 0 <= index < num_positions(num_sentences):
            raise ValueError(f"edit position {index} of {num_positions(num_sentences)}")
        if index == keep_position(num_sentences):
            return cls.keep()
        if index <= num_sentences:
            return cls.insert(index, sentence)
        return cls.replace(index - num_sentences - 1, sentence)

    def shifted(self, offset: int) -> Edit:
        """The same edit counted from `offset` sentences earlier, as a span's edit in its text."""
        if self.position is None:
            return self
        return Edit(self.operation, self.position + offset, self.sentence)

    def row(self) -> dict[str, Any]:
        return {
            "operation": str(self.operation),
            "position": self.position,
            "sentence": self.sentence,
        }


def keep_position(num_sentences: int) -> int:
    """The place of keep among the 2n + 2 positions: the last one."""
    return num_positions(num_sentences) - 1


def num_positions(num_sentences: int) -> int:
    return 2 * num_sentences + 2


def apply_edit(sentences: Sentences, edit: Edit) -> Sentences:
    """Apply one edit. Keep gives back the very same object."""
    edit.index(len(sentences))  # raises where the position does not exist
    if edit.position is None:
        return sentences
    if edit.operation is Operation.INSERT:
        return sentences.with_inserted(edit.position, edit.sentence)
    return sentences.with_replaced(edit.position, edit.sentence)


def apply_edits(response_post: str, edits: Iterable[Edit]) -> str:
    """The response after the edits, applied in order."""
    sentences = split_sentences(response_post)
    for edit in edits:
        sentences = apply_edit(sentences, edit)
    return str(sentences)


def standing_edits(edits: Sequence[Edit]) -> list[int]:
    """The numbers of the edits whose sentence is in the result, in the order of the text.

    A sentence that a later edit replaced is gone, and one that stood after a later insertion has
    moved on by one.
    """
    standing: dict[int, int] = {}  # the sentence's place now → the number of its edit
    for number, edit in enumerate(edits):
        if edit.position is None:
            continue
        if edit.operation is Operation.INSERT:
            standing = {
                place + (place >= edit.position): other for place, other in standing.items()
            }
        standing[edit.position] = number
    return [standing[place] for place in sorted(standing)]
