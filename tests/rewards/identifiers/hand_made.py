"""An encoder of six sentences with known angles between them, and exchanges made of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rewriting.exchange import Exchange, Label

VECTORS = {
    "Sorry!": (1.0, 0.0, 0.0),
    "Poor you.": (3.0, 4.0, 0.0),  # 0.6 from Sorry!, 0.8 from I see.
    "I see.": (0.0, 1.0, 0.0),
    "Why?": (0.0, 0.0, 2.0),
    "Where?": (0.0, 3.0, 4.0),  # 0.6 from I see., 0.8 from Why?, 0.48 from Poor you.
    "Get lost.": (-1.0, 0.0, 0.0),
}


class HandMade:
    """Gives the vectors above, and zeros for anything else. Keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, sentences: list[str], **options: Any) -> np.ndarray[Any, Any]:
        self.asked.append(list(sentences))
        return np.array([VECTORS.get(s, (0.0, 0.0, 0.0)) for s in sentences], dtype=np.float32)


def labelled(response_post: str, **labels: Label) -> Exchange:
    return Exchange("I failed again.", response_post, labels=labels)


def labels_of(levels: Mapping[str, int], **rationales: tuple[str, ...]) -> dict[str, Label]:
    return {m: Label(level, rationales.get(m, ())) for m, level in levels.items()}
