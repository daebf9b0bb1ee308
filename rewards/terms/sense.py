"""`sense`: whether a new sentence makes sense under this post, is true to it, and hurts nobody.

`contrast` says that a sentence is about this post; this says whether it is right about it. The
model is in rewards/reading/sense_model.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewards.option_kinds import PROBABILITY
from rewards.reading.sense_model import SenseModel
from rewards.terms.contrast import new_of_rows


class Sense:
    """What a new sentence loses where it probably makes no sense, is untrue of this person or
    hurts: 0 from a probability of `floor` of being welcome on, −1 at a probability of 0, on a line
    between them. Of several new sentences the worst counts.

    There is nothing to win: a stock sentence is surely right, and the surer answer is not the
    better one. The loss is bounded and ends at the floor, so that what people really say, which
    the model is less sure of, keeps what the other terms pay.
    In: completions, seeker_post, response_post, optionally sentence. Out: −1 to 0; 0 where nothing
    is new.
    """

    def __init__(self, model: SenseModel, *, floor: float = 0.1, name: str = "sense") -> None:
        PROBABILITY.check("floor", floor)
        self.__name__ = name
        self.model = model
        self.floor = floor

    def __call__(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str],
        response_post: Sequence[str],
        sentence: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[float]:
        rows = new_of_rows(completions, response_post, sentence)
        pairs = [(post, text) for post, new in zip(seeker_post, rows, strict=True) for text in new]
        found = iter([min(one.welcome / self.floor, 1.0) - 1.0 for one in self.model.read(pairs)])
        return [min([next(found) for _ in new], default=0.0) for new in rows]
