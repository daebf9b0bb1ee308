"""Stand-ins for models: an identifier and an encoder that read numbers off the words."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewards.identifiers.assessment import Assessment, Judgement
from rewriting.exchange import MECHANISMS

WORDS = ("sorry", "understand", "why")
STRONG, NONE = (0.1, 0.2, 0.7), (0.8, 0.15, 0.05)
"""Expected levels 1.6 and 0.25; called levels 2 and 0."""


class FakeIdentifier:
    """A mechanism is strong where its word is in the response. Counts what it was asked for."""

    name = "fake"

    def __init__(self) -> None:
        self.asked: list[list[tuple[str, str]]] = []

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        assert not rationales, "rewards have no use for rationales"
        self.asked.append(list(zip(seeker_posts, response_posts, strict=True)))
        return [self._one(response) for response in response_posts]

    @staticmethod
    def _one(response: str) -> Assessment:
        found = [word in response.lower() for word in WORDS]
        judgements = [Judgement(2, STRONG) if is_in else Judgement(0, NONE) for is_in in found]
        return Assessment(dict(zip(MECHANISMS, judgements, strict=True)))


class FakeEncoder:
    """Counts the words rain, exam and dog. Keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, sentences: list[str], **options: Any) -> np.ndarray[Any, Any]:
        self.asked.append(list(sentences))
        counts = [[s.lower().count(word) for word in ("rain", "exam", "dog")] for s in sentences]
        return np.array(counts, dtype=np.float32)


ODD_TEXTS = (
    "",
    " \n\t ",
    "🥺🥺🫂",
    "我很难过，因为考试没通过。",
    "มันยากมาก",
    "x" * 20_000,
    "so sad " * 5_000,
)
