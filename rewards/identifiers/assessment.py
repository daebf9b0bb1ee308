"""What an identifier says of a response, whatever model is behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rewriting.exchange import MECHANISMS


@dataclass(frozen=True, slots=True)
class Judgement:
    """One mechanism in one response.

    probabilities: of the levels 0, 1 and 2, calibrated. level: the one called, which an identifier
    may choose otherwise than by the largest probability. rationales: the parts of the response
    that carry it, exact substrings, empty at level 0 or where they were not asked for.
    """

    level: int
    probabilities: tuple[float, float, float]
    rationales: tuple[str, ...] = ()

    @property
    def expected_level(self) -> float:
        """The mean of the level under its probabilities: what rewards use."""
        return self.probabilities[1] + 2 * self.probabilities[2]


def shrunk(probabilities: tuple[float, float, float], share: float) -> tuple[float, float, float]:
    """Weak and strong times a share from 0 to 1; what is taken from them goes to none.

    The expected level is multiplied by the share too.
    """
    none, weak, strong = probabilities
    return none + (1 - share) * (weak + strong), share * weak, share * strong


@dataclass(frozen=True, slots=True)
class Assessment:
    """What an identifier says of one response: a judgement for each of the three mechanisms."""

    judgements: Mapping[str, Judgement]

    @property
    def empathy(self) -> int:
        """Total empathy by the levels called, 0 to 6."""
        return sum(self.judgements[mechanism].level for mechanism in MECHANISMS)

    @property
    def expected_empathy(self) -> float:
        """Total empathy by the expected levels, 0 to 6."""
        return sum(self.judgements[mechanism].expected_level for mechanism in MECHANISMS)


class Identifier(Protocol):
    """Assesses pairs of posts. Batch size, order and padding never change an assessment."""

    name: str

    def assess(
        self,
        seeker_posts: Sequence[str],
        response_posts: Sequence[str],
        *,
        rationales: bool = True,
    ) -> list[Assessment]: ...
