"""`belonging`: whether a sentence that was said to somebody else belongs under this post too.

It asks what `sense` asks, of a larger model: a language model of half a billion parameters that has
also learnt from kind sentences lent to other people (rewriting/sample/LENT.md). It costs several
times as much, and ranks candidates in use rather than the samples of a training.
"""

from __future__ import annotations

from typing import Any

from rewards.reading.sense_model import SenseModel
from rewards.terms.sense import Sense


class Belonging:
    """What a new sentence loses where a larger reader doubts that it belongs under this post: 0
    from a probability of `floor` on, −1 at a probability of 0. Of several the worst counts.

    In: completions, seeker_post, response_post, optionally sentence. Out: −1 to 0; 0 where nothing
    is new.
    """

    def __init__(self, model: SenseModel, *, floor: float = 0.5, name: str = "belonging") -> None:
        self.__name__ = name
        self._sense = Sense(model, floor=floor, name=name)

    def __call__(self, **columns: Any) -> list[float]:
        return self._sense(**columns)
