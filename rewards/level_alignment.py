"""`level_alignment`: how likely the response shows each mechanism at its target level (EmpRL).

Legend: R responses and T targets of the rows of a call, of which there are B.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rewards.identifiers.assessment import Identifier
from rewards.protocol import texts
from rewriting.data.formats import parse_level
from rewriting.errors import UserError
from rewriting.exchange import LEVELS, MECHANISMS

Probabilities = tuple[tuple[float, float, float], ...]
Target = tuple[tuple[float, float, float], ...]
WAYS = ("product", "mean")


class LevelAlignment:
    """How probable the target levels are, from 0 to 1, in one of two ways.

    `combine: product` is EmpRL (arXiv 2408.02976): exp(−Σ_m w_m · cross-entropy of mechanism m
    against its target level), with all weights 1 the product of the three probabilities of the
    target levels. `combine: mean` is their weighted mean: the accuracy to be expected. Each
    mechanism is worth its share of it, whatever the others are. Both reward a response for being
    as empathic as the human one was, not for the most empathy. A weight of 0 leaves a mechanism
    out: the ablation that EmpRL's authors ask for.

    Two more ways compare the rows of a call, score(i, j) being response i's for the target of j:

    `calibrated: c` subtracts c times what the other responses would have got, had this one's levels
    been their target: score(i, i) − c · mean_j agreement(i, j). Most people show most mechanisms at
    level 0, so that a response which shows nothing does well for anybody, and a policy that cannot
    tell conversations apart is trained to show nothing ever. With c = 1 its training comes to rest
    where the identifier sees each level, on average, as often as in people: what it climbs is the
    quadratic proper scoring rule (Brier 1950). Between 0 and 1 it leans towards the usual level.
    The mean of these rewards is not what is climbed (of the agreement, half is): do not rank
    policies by it.

    `relative: true` subtracts what the other responses got, on average, for this row's target:
    score(i, i) − mean_j score(j, i). Some targets are easier than others, whatever is said; this
    takes that noise away and leaves the gradient to be expected as it is, because nothing of it
    depends on the row's own response. What is logged stays near 0 while all get better together.

    In: completions, seeker_post, and the target levels 0, 1 or 2 in the columns
    emotional_reactions, interpretations, explorations (those whose weight is not 0). Three
    probabilities may stand for a level: the score is then the one to be expected (of the product,
    if the mechanisms are independent). Out: None where
    a row lacks a target, or has nobody to be compared with. A blank completion gets the score 0:
    being silent is no way of meeting the target "no empathy".
    """

    def __init__(
        self,
        identifier: Identifier,
        *,
        weights: Mapping[str, float] | None = None,
        combine: str = "product",
        calibrated: float = 0.0,
        relative: bool = False,
        name: str = "level_alignment",
    ) -> None:
        self.__name__ = name
        self.identifier = identifier
        self.weights = _complete(weights or {})
        if combine not in WAYS:
            raise UserError(f"combine is {' or '.join(WAYS)}, not {combine!r}.")
        self.combine = combine
        if not (math.isfinite(calibrated) and calibrated >= 0):
            raise UserError(f"calibrated is 0 or more, not {calibrated}.")
        self.calibrated = float(calibrated)
        self.relative = relative
        self.compares_rows = bool(calibrated) or relative

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
        known = {row: target for row, target in enumerate(targets) if target is not None}
        scores = self._scores([found[row] for row in known], list(known.values()))
        rewards = dict(zip(known, scores, strict=True))
        return [rewards.get(row) for row in range(len(responses))]

    def _scores(
        self, found: Sequence[Probabilities | None], targets: Sequence[Target]
    ) -> Sequence[float | None]:
        """Of responses and their targets, compared with each other where that is asked for."""
        if not self.compares_rows:
            return [self._score(one, target) for one, target in zip(found, targets, strict=True)]
        if len(found) < 2:
            return [None] * len(found)
        score_RT = np.array([[self._score(one, target) for target in targets] for one in found])
        reward_R = score_RT.diagonal().copy()
        if self.relative:
            reward_R -= _mean_of_others(score_RT.T)
        if self.calibrated:
            agreement_RR = np.array([[self._agreement(one, o) for o in found] for one in found])
            reward_R -= self.calibrated * _mean_of_others(agreement_RR)
            if self.relative:
                reward_R += self.calibrated * _mean_among_others(agreement_RR)
        return [float(reward) for reward in reward_R]

    def _agreement(self, own: Probabilities | None, other: Probabilities | None) -> float:
        """What a response would get for showing what another one shows; silence agrees with all."""
        return self._score(other, own) if own is not None else 1.0

    def _score(self, probabilities: Probabilities | None, target: Target) -> float:
        if probabilities is None:
            return 0.0
        weights = [weight for weight in self.weights.values() if weight]
        found = zip(probabilities, target, weights, strict=True)
        if self.combine == "mean":
            met = [weight * _dot(p, wanted) for p, wanted, weight in found]
            return sum(met) / sum(weights)
        return math.prod(_dot([one**weight for one in p], wanted) for p, wanted, weight in found)

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
        return tuple(_wanted(value, f"{mechanism} of row {row}") for mechanism, value in named)

    @property
    def _counted(self) -> list[str]:
        return [mechanism for mechanism, weight in self.weights.items() if weight]


def _dot(values: Sequence[float], shares: Sequence[float]) -> float:
    return sum(value * share for value, share in zip(values, shares, strict=True))


def _wanted(value: Any, name: str) -> tuple[float, float, float]:
    """The probability of each level: 1 for the one that is named, or as they are given."""
    if not isinstance(value, list | tuple):
        level = parse_level(value, name)
        return (float(level == 0), float(level == 1), float(level == 2))
    if len(value) != len(LEVELS) or abs(sum(value) - 1) > 1e-3 or min(value) < 0:
        raise UserError(
            f"{name} is {value!r}; a target is a level, or three probabilities that add up to 1."
        )
    zero, one, two = map(float, value)
    return (zero, one, two)


def _mean_of_others(score_BB: np.ndarray) -> np.ndarray:
    """[B]: the mean of each row without its place on the diagonal."""
    return (score_BB.sum(axis=1) - score_BB.diagonal()) / (len(score_BB) - 1)


def _mean_among_others(value_BB: np.ndarray) -> np.ndarray:
    """[B]: for each row, the mean over pairs of two others; 0 where there are no two."""
    size = len(value_BB)
    apart_BB = value_BB * (1 - np.eye(size))
    total_B = apart_BB.sum() - apart_BB.sum(axis=0) - apart_BB.sum(axis=1)
    return total_B / max(1, (size - 1) * (size - 2))


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
