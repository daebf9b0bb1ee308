"""`level_alignment`: how likely the response shows each mechanism at its target level (EmpRL)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rewards.identifiers.assessment import Identifier
from rewards.protocol import texts
from rewriting.data.formats import parse_level
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS

Probabilities = tuple[tuple[float, float, float], ...]
Target = tuple[int, ...]
WAYS = ("product", "mean")


class LevelAlignment:
    """How probable the target levels are, from 0 to 1, in one of two ways.

    `combine: product` is EmpRL (arXiv 2408.02976): exp(−Σ_m w_m · cross-entropy of mechanism m
    against its target level), with all weights 1 the product of the three probabilities of the
    target levels. `combine: mean` is their weighted mean: the accuracy to be expected, which one
    mechanism met for sure cannot carry. Both reward a response for being as empathic as the human
    one was, not for the most empathy. A weight of 0 leaves a mechanism out: the ablation that
    EmpRL's authors ask for.

    `relative: true` subtracts what the other responses of the call would have got, on average, had
    they been given to this row's target. Some targets are easier than others, whatever is said;
    this takes that noise away and leaves the gradient to be expected as it is, because nothing of
    it depends on the row's own response. What is logged stays near 0 while all get better together.
    A single row has nobody to be compared with.

    In: completions, seeker_post, and the target levels 0, 1 or 2 in the columns
    emotional_reactions, interpretations, explorations (those whose weight is not 0). Out: None
    where a row lacks a target. A blank completion gets 0: being silent is no way of meeting the
    target "no empathy".
    """

    def __init__(
        self,
        identifier: Identifier,
        *,
        weights: Mapping[str, float] | None = None,
        combine: str = "product",
        relative: bool = False,
        name: str = "level_alignment",
    ) -> None:
        self.__name__ = name
        self.identifier = identifier
        self.weights = _complete(weights or {})
        if combine not in WAYS:
            raise UserError(f"combine is {' or '.join(WAYS)}, not {combine!r}.")
        self.combine = combine
        self.relative = relative

    def __call__(
        self, *, completions: Sequence[Any], seeker_post: Sequence[str], **columns: Any
    ) -> list[float | None]:
        responses = texts(completions)
        targets = self._targets(columns, len(responses))
        asked = [
            (seeker, response)
            for seeker, response, target in zip(seeker_post, responses, targets, strict=True)
            if target is not None and response.strip()
        ]
        # Equal pairs of a call are assessed once. Nothing is kept for the next: what a batch is
        # made of, and with it the rounding, would depend on the past, and resuming would show.
        unique = list(dict.fromkeys(asked))
        probabilities = dict(zip(unique, self._assess(unique), strict=True))
        pairs = zip(seeker_post, responses, strict=True)
        found = [probabilities.get(pair) for pair in pairs]
        compared = [one for one, target in zip(found, targets, strict=True) if target is not None]
        return [
            None
            if target is None
            else self._score(one, target) - self._others(compared, one, target)
            for one, target in zip(found, targets, strict=True)
        ]

    def _others(
        self, found: Sequence[Probabilities | None], own: Probabilities | None, target: Target
    ) -> float:
        """What the other responses would have got for this target, on average."""
        if not self.relative or len(found) < 2:
            return 0.0
        total = sum(self._score(one, target) for one in found) - self._score(own, target)
        return total / (len(found) - 1)

    def _score(self, probabilities: Probabilities | None, target: Target) -> float:
        if probabilities is None:
            return 0.0
        weights = [weight for weight in self.weights.values() if weight]
        found = zip(probabilities, target, weights, strict=True)
        met = [(p[level], weight) for p, level, weight in found]
        if self.combine == "mean":
            return sum(p * weight for p, weight in met) / sum(weights)
        return math.prod(p**weight for p, weight in met)

    def _assess(self, pairs: list[tuple[str, str]]) -> list[Probabilities]:
        if not pairs:
            return []
        seekers, responses = zip(*pairs, strict=True)
        found = self.identifier.assess(seekers, responses, rationales=False)
        return [tuple(a.judgements[m].probabilities for m in self._counted) for a in found]

    def _targets(self, columns: Mapping[str, Any], rows: int) -> list[Target | None]:
        missing = [mechanism for mechanism in self._counted if mechanism not in columns]
        if missing:
            raise UserError(
                f"the data has no column {' and no column '.join(missing)}: the target levels, "
                "0, 1 or 2, that the response is to have."
            )
        return [self._target([columns[m][row] for m in self._counted], row) for row in range(rows)]

    def _target(self, values: list[Any], row: int) -> Target | None:
        if any(value is None or value == "" or value != value for value in values):
            return None
        named = zip(self._counted, values, strict=True)
        return tuple(parse_level(value, f"{mechanism} of row {row}") for mechanism, value in named)

    @property
    def _counted(self) -> list[str]:
        return [mechanism for mechanism, weight in self.weights.items() if weight]


def _complete(weights: Mapping[str, float]) -> dict[str, float]:
    """A weight for every mechanism, 1 where none is given."""
    unknown = [name for name in weights if name not in MECHANISMS]
    if unknown:
        raise UserError(f"{unknown[0]!r} is no mechanism. Mechanisms: {', '.join(MECHANISMS)}.")
    complete = {mechanism: float(weights.get(mechanism, 1.0)) for mechanism in MECHANISMS}
    if any(not math.isfinite(weight) or weight < 0 for weight in complete.values()):
        raise UserError(f"weights of mechanisms are 0 or more, not {dict(weights)}.")
    if not any(complete.values()):
        raise UserError("one mechanism at least needs a weight above 0.")
    return complete
