"""Best of N: several rewrites of each exchange by one policy, and the one a reward likes best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rewriting import Exchange, Rewrite
from rewriting.data.columns import column_names, data_columns
from rewriting.loop import Policy
from rewriting.runtime.seeds import derive_seed


class Scores(Protocol):
    """What a sum of rewards says of a batch."""

    @property
    def totals(self) -> Sequence[float | None]: ...

    def row(self, index: int) -> Mapping[str, float | None]: ...


class Scorer(Protocol):
    """A sum of rewards: the `RewardSum` that a recipe hands in."""

    def score(self, *, completions: Sequence[Any], **columns: Any) -> Scores: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rewrite, the value of each reward term for it, and the total they lead to."""

    rewrite: Rewrite
    rewards: Mapping[str, float | None]
    total: float | None


class BestOf:
    """A policy made of another one: N samples of each exchange, ranked, the best one given.

    The first sample has the seed itself, so it is what the policy alone would give, and N more
    samples never make the reward of a row smaller. Equal rewrites are scored once.
    margin: with one, the reply as it was is a candidate too, and a rewrite has to be paid more than
    it by this much; None: the best sample is given, however bad it is.
    """

    def __init__(
        self,
        policy: Policy,
        scorer: Scorer,
        num_candidates: int,
        *,
        margin: float | None = None,
    ) -> None:
        if num_candidates < 1:
            raise ValueError(f"the best of how many? Of 1 at least, not {num_candidates}")
        self.policy = policy
        self.scorer = scorer
        self.num_candidates = num_candidates
        self.margin = margin
        self.name = policy.name

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        return [best.rewrite for best in self.best(exchanges, seed=seed)]

    def best(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Candidate]:
        return [candidates[0] for candidates in self.ranked(exchanges, seed=seed)]

    def ranked(self, exchanges: Sequence[Exchange], *, seed: int) -> list[list[Candidate]]:
        """The different candidates of each exchange, best first; of equals the earlier sample."""
        samples = self._samples(exchanges, seed)
        if self.margin is not None:
            samples.append([Rewrite(exchange, exchange.response_post) for exchange in exchanges])
        rows = [_different(row) for row in zip(*samples, strict=True)]
        rewrites = [rewrite for row in rows for rewrite in row]
        sources = [rewrite.exchange for rewrite in rewrites]
        scores = self.scorer.score(
            **data_columns(sources, column_names(sources)),
            completions=[rewrite.rewritten_response for rewrite in rewrites],
            sentence=[rewrite.new_text for rewrite in rewrites],
        )
        found = (
            Candidate(rewrite, dict(scores.row(place)), scores.totals[place])
            for place, rewrite in enumerate(rewrites)
        )
        return [sorted((next(found) for _ in row), key=self._rank) for row in rows]

    def _samples(self, exchanges: Sequence[Exchange], seed: int) -> list[list[Rewrite]]:
        """The rewrites of every candidate's seed, together where the policy can do that."""
        seeds = [candidate_seed(seed, number) for number in range(self.num_candidates)]
        if together := getattr(self.policy, "rewrites", None):
            return list(together(exchanges, seeds))
        return [self.policy.rewrite(exchanges, seed=one) for one in seeds]

    def _rank(self, candidate: Candidate) -> float:
        """Lowest first; a candidate to which no reward applies comes last."""
        if candidate.total is None:
            return float("inf")
        return -candidate.total - (0.0 if candidate.rewrite.changed else self.margin or 0.0)


def candidate_seed(seed: int, number: int) -> int:
    return derive_seed(seed, "candidate", number) if number else seed


def _different(rewrites: Sequence[Rewrite]) -> list[Rewrite]:
    """The rewrites whose text has not come before."""
    found: dict[str, Rewrite] = {}
    for rewrite in rewrites:
        found.setdefault(rewrite.rewritten_response, rewrite)
    return list(found.values())
