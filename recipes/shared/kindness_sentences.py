"""The labelled sentences of kindness: `train.py kindness` learns from them, and `sense` too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recipes.shared.sources import labelled_lines


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, whether it hurts, and how."""

    text: str
    hurts: bool
    kind: str


def sentences(data: str, split: str) -> list[Sentence]:
    """The sentences of one part, of the bundled files or those in a folder; a bad line is named."""
    needs = "`text` and `hurts`, true or false"
    return labelled_lines(data, f"kindness_{split}.jsonl", _sentence, needs)


def _sentence(row: Any) -> Sentence:
    if not isinstance(row["hurts"], bool):
        raise TypeError(f"hurts is {row['hurts']!r}")
    return Sentence(str(row["text"]), row["hurts"], str(row.get("kind", "")))
