"""The labelled sentences of kindness: `train.py kindness` learns from them, and `sense` too."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rewriting.data.load import SAMPLE
from rewriting.errors import UserError


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, whether it hurts, and how."""

    text: str
    hurts: bool
    kind: str


def sentences(data: str, split: str) -> list[Sentence]:
    """The sentences of one part, of the bundled files or those in a folder; a bad line is named."""
    path = Path(data or SAMPLE) / f"kindness_{split}.jsonl"
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; --data names the folder that holds it.")
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
            if not isinstance(row["hurts"], bool):
                raise TypeError(f"hurts is {row['hurts']!r}")
            found.append(Sentence(str(row["text"]), row["hurts"], str(row.get("kind", ""))))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            message = (
                f"{path}, line {number}: a line needs `text` and `hurts`, true or false ({error})."
            )
            raise UserError(message) from error
    return found
