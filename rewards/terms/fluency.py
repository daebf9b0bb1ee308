"""Fluency: how readily a language model says the rewritten response, per token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rewards.protocol import texts
from rewriting.runtime.language_models.backbone import Backbone


class Fluency:
    """How likely a language model finds the completion: p(completion)^(1/N), the geometric mean
    probability of its N tokens, in (0, 1].

    A term of PARTNER's reward (arXiv 2101.07714). It is 1 / perplexity, so it can be added with a
    positive weight, and the N-th root keeps long responses from being punished for their length.
    `log: true` gives its logarithm, 0 or less: twice the perplexity costs the same wherever it
    happens, while 1 / perplexity is nearly all about the most predictable responses.
    The model is the bare backbone, or one of its roles. An empty completion is scored as the end
    token alone.
    """

    def __init__(
        self,
        backbone: Backbone | None = None,
        *,
        role: str | None = None,
        log: bool = False,
        name: str = "fluency",
    ) -> None:
        self.backbone = backbone or Backbone.shared()
        self.role = role
        self.log = log
        self.__name__ = name

    def __call__(self, completions: Sequence[Any], **_: Any) -> list[float]:
        means = mean_log_probs(self.backbone, completions, self.role)
        return means if self.log else [math.exp(mean) for mean in means]


def mean_log_probs(
    backbone: Backbone, completions: Sequence[Any], role: str | None = None
) -> list[float]:
    """Mean log-probability per token of each completion, from a start token on."""
    spoken = texts(completions)
    return [score.mean for score in backbone.scores([""] * len(spoken), spoken, role)]


class Perplexity:
    """Perplexity, exp(−mean log-probability of a token): 1 or more; lower is more fluent.

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
