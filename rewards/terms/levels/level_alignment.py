"""`level_alignment`: how likely the response shows each mechanism at its target level (EmpRL).

Legend: R responses and T targets of B rows, M mechanisms that count, L levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rewards.identifiers.assessment import Identifier
from rewards.protocol import texts
from rewriting.data.formats import parse_level
from rewriting.errors import UserError
from rewriting.exchange import LEVELS, MECHANISMS

Probabilities = tuple[tuple[float, float, float], ...]
Target = tuple[tuple[float, float, float], ...]
Fact = tuple[Probabilities | None, Target]
"""What a response shows, None where it is blank, and what it is to show."""
WAYS = ("product", "mean")
NOTHING: Target = ((0.0, 0.0, 0.0),)
"""Stands in for what a blank response shows."""


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

    The probability of each mechanism's target level is logged as a part, not compared with others.

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

    def __call__(self, **columns: Any) -> list[float | None]:
        return self.compare(self.read(**columns))

    def read(
        self,
        *,
        completions: Sequence[Any],
        seeker_post: Sequence[str],
        log_extra: Callable[[str, Any], None] | None = None,
        **columns: Any,
    ) -> list[Fact | None]:
        """What has to be known of each row, in numbers; None where it lacks a target.

        This is where the identifier works: of several processes each reads its own rows, and they
        exchange what they read.
        """
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
        pairs = zip(seeker_post, responses, targets, strict=True)
        facts = [
            None if target is None else (probabilities.get((seeker, response)), target)
            for seeker, response, target in pairs
        ]
        if log_extra is not None:
            for place, mechanism in enumerate(self._counted):
                log_extra(mechanism, [_probability(fact, place) for fact in facts])
        return facts

    def compare(self, facts: Sequence[Fact | None]) -> list[float | None]:
        """The reward of each row among all of them, from the facts that `read` gave."""
        known = {row: fact for row, fact in enumerate(facts) if fact is not None}
        rewards: dict[int, float] = {}
        if len(known) > 1 or (known and not self.compares_rows):
            shown = [probabilities for probabilities, _ in known.values()]
            silent_R = np.array([probabilities is None for probabilities in shown])
            shown_RML = np.array([p or NOTHING * len(self._counted) for p in shown])
            target_TML = np.array([target for _, target in known.values()])
            reward_R = self._rewards(shown_RML, silent_R, target_TML)
            rewards = dict(zip(known, reward_R.tolist(), strict=True))
        return [rewards.get(row) for row in range(len(facts))]

    def _rewards(
        self, shown_RML: np.ndarray, silent_R: np.ndarray, target_TML: np.ndarray
    ) -> np.ndarray:
        """[R]: of responses and their targets, compared where that is asked for."""
        reward_R = np.where(silent_R, 0.0, self._met(shown_RML, target_TML))
        if self.relative:
            score_RT = self._met(shown_RML[:, None], target_TML[None])
            score_RT[silent_R] = 0.0
            reward_R -= _mean_of_others(score_RT.T)
        if self.calibrated:
            # What a response would get for showing what another shows; silence agrees with all.
            agreement_RR = self._met(shown_RML[None], shown_RML[:, None])
            agreement_RR[:, silent_R] = 0.0
            agreement_RR[silent_R] = 1.0
            reward_R -= self.calibrated * _mean_of_others(agreement_RR)
            if self.relative:
                reward_R += self.calibrated * _mean_among_others(agreement_RR)
        return reward_R

    def _met(self, shown: np.ndarray, target: np.ndarray) -> np.ndarray:
        """[…, M, L] and [..., M, L] → […]: how far what is shown meets the target."""
        weight_M = np.array([weight for weight in self.weights.values() if weight])
        if self.combine == "mean":
            return (weight_M * _dot(shown, target)).sum(axis=-1) / weight_M.sum()
        return _dot(shown ** weight_M[:, None], target).prod(axis=-1)

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


def _probability(fact: Fact | None, place: int) -> float | None:
    """Of a mechanism's target level; that of a blank response is 0."""
    if fact is None:
        return None
    shown, target = fact
    if shown is None:
        return 0.0
    return sum(a * b for a, b in zip(shown[place], target[place], strict=True))


def _dot(values: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """[…, L] and […, L] → […]. Level by level, not by a matrix product, whose last bits depend on
    how many rows there are: a score is the same whoever else is in the batch."""
    products = [values[..., level] * shares[..., level] for level in LEVELS]
    return np.asarray(products[0] + products[1] + products[2])


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
