"""The options of `hf:MODEL`: how a classifier is asked and read. Checking them needs no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from rewards.loading import suggestion
from rewriting.errors import UserError

TEXTS: Final = ("completion", "sentence", "pair", "chat")
OUTPUTS: Final = ("probability", "logit")


@dataclass(frozen=True, slots=True)
class ClassifierOptions:
    """How a classifier is asked and read.

    label: the label that is the reward, by name or index; a model with a single output needs none.
    temperature: the logits are divided by it. text: what the model reads, which is the completion;
    the new sentence; the seeker post and the completion as a pair of texts; or both as a chat, in
    the model's own template. output: `probability` (of the label: a softmax over the labels, or a
    sigmoid where labels do not exclude each other) or `logit`; None means the probability for
    several labels, and the number as it is for a single output or a regression. batch_size: texts
    read at once. max_tokens: longer texts are cut; None means as many as the model can read.
    """

    label: str | int | None = None
    temperature: float = 1.0
    text: str = "completion"
    output: str | None = None
    batch_size: int = 16
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if not _is_number(self.temperature) or not 0 < self.temperature < math.inf:
            raise UserError(f"temperature is {self.temperature!r}; it must be a number above 0.")
        if self.text not in TEXTS:
            raise UserError(f"text is {self.text!r}. {suggestion(str(self.text), list(TEXTS))}")
        if self.output is not None and self.output not in OUTPUTS:
            known = suggestion(str(self.output), list(OUTPUTS))
            raise UserError(f"output is {self.output!r}. {known}")
        for name, count in (("batch_size", self.batch_size), ("max_tokens", self.max_tokens)):
            given = name == "batch_size" or count is not None
            if given and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
                raise UserError(f"{name} is {count!r}; it must be a whole number, 1 or more.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
