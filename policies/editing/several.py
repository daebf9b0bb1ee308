"""Several rewrites of each exchange, all sampled in one batch: a model reads its weights once for a
token of every one of them, so four candidates take little longer than one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewriting.edits import Edit
from rewriting.exchange import Exchange, Rewrite
from rewriting.loop import EditState, rewrite_by_edits
from rewriting.runtime.seeds import derive_seed

Sample = Callable[[Sequence[EditState], Sequence[int]], Any]
"""The `sample` of an agent: actions first."""


def state_seed(state: EditState, seed: int) -> int:
    """A seed for one state, the same wherever in a file or batch it stands."""
    posts = (state.exchange.seeker_post, state.exchange.response_post)
    return derive_seed(seed, *posts, state.start, state.turn)


@dataclass(frozen=True, slots=True)
class _Seeded:
    """An EditPolicy in which every exchange, told by its identity, has a seed of its own."""

    sample: Sample
    seeds: Mapping[int, int]

    def propose(self, states: Sequence[EditState], *, seed: int) -> list[Edit]:
        own = [state_seed(state, self.seeds[id(state.exchange)]) for state in states]
        actions, _ = self.sample(states, own)
        return [action.edit(len(state.span)) for action, state in zip(actions, states, strict=True)]


def rewrites_together(
    sample: Sample, exchanges: Sequence[Exchange], seeds: Sequence[int], **walk: int
) -> list[list[Rewrite]]:
    """For each seed the rewrites that it gives, as if each were sampled for itself.

    walk: span_length and max_edits.
    """
    copies = [(seed, replace(exchange)) for seed in seeds for exchange in exchanges]
    policy = _Seeded(sample, {id(copy): seed for seed, copy in copies})
    found = rewrite_by_edits(policy, [copy for _, copy in copies], seed=0, **walk)
    originals = [exchange for _ in seeds for exchange in exchanges]
    rows = [replace(one, exchange=own) for one, own in zip(found, originals, strict=True)]
    size = len(exchanges)
    return [rows[size * number : size * (number + 1)] for number in range(len(seeds))]
