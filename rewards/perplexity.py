"""Perplexity: a metric of how surprising the rewritten response is to a language model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rewards.fluency import mean_log_probs
from rewriting.runtime.backbone import Backbone


class Perplexity:
    """exp(−mean log-probability of a token), 1 or more; lower is more fluent.

    A metric. In a sum of rewards its weight is 0, which logs it, or negative: with a positive one
    the policy is paid for gibberish. Having no upper bound it makes a poor reward in any case;
    Fluency is its inverse and lies in (0, 1]. An empty completion is scored as the end token alone.
    """

    def __init__(
        self, backbone: Backbone | None = None, *, role: str | None = None, name: str = "perplexity"
    ) -> None:
        self.backbone = backbone or Backbone.shared()
        self.role = role
        self.__name__ = name

    def __call__(self, completions: Sequence[Any], **_: Any) -> list[float]:
        return [math.exp(-mean) for mean in mean_log_probs(self.backbone, completions, self.role)]
