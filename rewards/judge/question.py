"""One question to a judge, and the interface of everything that answers questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Protocol

Numbers = tuple[float, ...]
"""What is known of one question: the probability of each answer, or a log-probability."""


@dataclass(frozen=True, slots=True)
class Question:
    """A template, the texts for its placeholders, and the answers that are allowed.

    The texts stay apart from the template, so that a judge can shorten a long post without touching
    the instruction, and can read what looks like a special token in a post as plain text.
    """

    template: str
    texts: tuple[tuple[str, str], ...]
    answers: tuple[str, ...] = ()

    @property
    def pieces(self) -> list[tuple[str, str]]:
        """The prompt in order, as pairs of a placeholder and its text; "" marks the template."""
        texts = dict(self.texts)
        pieces: list[tuple[str, str]] = []
        for literal, placeholder, _, _ in Formatter().parse(self.template):
            if literal:
                pieces.append(("", literal))
            if placeholder is not None:
                pieces.append((placeholder, texts[placeholder]))
        return pieces

    @property
    def prompt(self) -> str:
        return "".join(text for _, text in self.pieces)

    def key(self, identity: str) -> str:
        """A digest of the model, the rubric, the texts and the answers: the name in a cache."""
        whole = json.dumps([identity, self.template, self.texts, self.answers])
        return hashlib.sha256(whole.encode()).hexdigest()


class Judge(Protocol):
    """Answers questions, each with as many numbers as it has answers.

    The numbers are probabilities, and may sum to less than 1 where the model would rather have said
    something else. They come with the place of their question, as soon as they are known, so that
    a cache keeps what was paid for when a later question fails.

    identity: what tells this model from others in a cache.
    """

    name: str
    identity: str

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Numbers]]: ...
