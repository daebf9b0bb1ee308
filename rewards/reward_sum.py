"""RewardSum: named, weighted terms that together are a reward again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from rewards.event_loop import gather_or_cancel, run
from rewards.parts import logging_parts
from rewards.protocol import (
    ComparesRows,
    Reward,
    awaited,
    by_row,
    called,
    checked,
    compares_rows,
    facts_of,
    is_async,
)
from rewards.scaling import (
    SCALES,
    Gather,
    Moments,
    merged,
    moments_of,
    scaled,
)
from rewriting.errors import UserError
from rewriting.runtime.processes import across_processes, process_index
from rewriting.statistics.means import mean

Values = list[float | None]


@dataclass(frozen=True, slots=True)
class Term:
    """A reward, its weight in the sum, and how it is scaled before that (scaling.py).

    Weight 0 makes it a metric: computed and logged, not rewarded.
    """

    reward: Reward
    weight: float = 1.0
    scale: str | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """What a RewardSum says of a batch.

    terms: the values of every term as it gave them, None where it does not apply. contributions:
    what each rewarded term adds to the total, after scale and weight. totals: their sums; None
    where no rewarded term applies. parts: what terms report beside their value, by TERM/PART, such
    as the mechanisms of `empathy_change`.
    """

    terms: Mapping[str, Values]
    contributions: Mapping[str, Values]
    totals: Values
    parts: Mapping[str, Values] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.totals)

    def means(self) -> dict[str, float]:
        """The mean of each term, and of each part of one, over the rows it applies to; without
        those that apply to none."""
        means = {name: mean(values) for name, values in {**self.terms, **self.parts}.items()}
        return {name: value for name, value in means.items() if value is not None}

    def mean_total(self) -> float | None:
        return mean(self.totals)

    def row(self, index: int) -> dict[str, float | None]:
        """One row's values by term: the `rewards` of an output line."""
        return {name: values[index] for name, values in self.terms.items()}


class RewardSum:
    """Σ weight · scaled term, over the terms that apply to a row.

    terms: name → Term. name: what TRL's logs call the sum. gather: brings together, from all
    processes, the moments of scaled terms and the rows of terms that compare them; all must then
    score as often. By default through torch.distributed where that runs.

    A term reports parts of its value with the `log_extra(column, values)` that it is called with:
    here as under TRL, where they go to the table of completions as well.

    A Reward itself, so it goes into a TRL trainer's `reward_funcs` as it is, and into another sum.
    A part for `Checkpoints` as well: its state is the running moments of the scaled terms.
    """

    def __init__(
        self,
        terms: Mapping[str, Term],
        *,
        name: str = "reward_sum",
        gather: Gather = across_processes,
    ) -> None:
        if not terms:
            raise UserError("a sum of rewards needs at least one reward.")
        for term_name, term in terms.items():
            check_weight(term_name, term.weight, term.scale)
            if not callable(term.reward):
                raise UserError(f"reward {term_name!r} is {term.reward!r}, which cannot be called.")
            if is_async(term.reward) and compares_rows(term.reward):
                raise UserError(
                    f"reward {term_name!r} is async and compares rows; it can do one of the two."
                )
        self.__name__ = name
        self.terms = dict(terms)
        self.gather = gather
        self.moments = {n: Moments() for n, term in self.terms.items() if term.scale}
        self.compares_rows = any(compares_rows(term.reward) for term in self.terms.values())

    def __call__(self, *, completions: Sequence[Any], **columns: Any) -> Values:
        """The totals, under TRL's protocol. Every term is logged by its name."""
        log_metric, log_extra = columns.get("log_metric"), columns.get("log_extra")
        scores = self._score(columns | {"completions": completions}, in_training(log_metric))
        for name, values in scores.terms.items():
            if log_extra is not None:
                log_extra(name, values)
        for name, value in scores.means().items():
            if log_metric is not None:
                log_metric(f"rewards/{name}/mean", value)
        return scores.totals

    def score(self, *, completions: Sequence[Any], update: bool = False, **columns: Any) -> Scores:
        """Score a batch, term by term.

        update: let the scaled terms count this batch into their moments, before they are scaled by
        them, and those with `compares_rows` see the rows of all processes: in training, not in
        evaluation, where one process may have more batches than another.
        """
        return self._score(columns | {"completions": completions}, update)

    def _score(self, columns: dict[str, Any], update: bool) -> Scores:
        parts: dict[str, Values] = {}
        values = self._values(_filled(columns), update, parts)
        if update and self.moments:
            self._update(values)
        contributions = {
            name: [self._contribution(name, value) for value in values[name]]
            for name, term in self.terms.items()
            if term.weight
        }
        rows = range(len(columns["completions"]))
        totals = [_total([c[row] for c in contributions.values()]) for row in rows]
        return Scores(values, contributions, totals, parts)

    def _contribution(self, name: str, value: float | None) -> float | None:
        term = self.terms[name]
        if value is None:
            return None
        return term.weight * scaled(value, self.moments.get(name, Moments()), term.scale)

    def _values(
        self, columns: dict[str, Any], update: bool, parts: dict[str, Values]
    ) -> dict[str, Values]:
        """Every term's checked values. Sync terms run in order, then async ones all at once."""
        asynchronous = {name: t.reward for name, t in self.terms.items() if is_async(t.reward)}
        found = {
            name: self._called(name, term.reward, columns, update, parts)
            for name, term in self.terms.items()
            if name not in asynchronous
        }
        if asynchronous and len(columns["completions"]):
            found |= run(_together(asynchronous, columns, parts))
        return {name: found.get(name, []) for name in self.terms}

    def _called(
        self,
        name: str,
        reward: Reward,
        columns: Mapping[str, Any],
        update: bool,
        parts: dict[str, Values],
    ) -> Values:
        """A term's values for the rows of this process, whoever else's it has to see for them."""
        count, first = len(columns["completions"]), 0
        if update and compares_rows(reward) and isinstance(reward, ComparesRows):
            return self._compared(name, reward, logging_parts(columns, name, parts))
        if update and compares_rows(reward):
            own = {key: list(column) for key, column in columns.items() if by_row(column, count)}
            shares = self.gather(own)
            first = sum(len(share["completions"]) for share in shares[: process_index()])
            whole = {key: [value for share in shares for value in share[key]] for key in own}
            columns = {**columns, **whole}
        if not len(columns["completions"]):
            return []
        own_rows = slice(first, first + count)
        columns = logging_parts(columns, name, parts, own_rows)
        return called(name, reward, columns)[own_rows]

    def _compared(self, name: str, reward: ComparesRows, columns: Mapping[str, Any]) -> Values:
        """The same, where each process reads its own rows and they exchange what they read."""
        own = facts_of(name, reward, columns) if len(columns["completions"]) else []
        shares = self.gather(own)
        first = sum(len(share) for share in shares[: process_index()])
        facts = [fact for share in shares for fact in share]
        if not facts:
            return []
        values = checked(name, reward.compare(facts), {"completions": facts})
        return values[first : first + len(own)]

    def _update(self, values: Mapping[str, Values]) -> None:
        batch = {name: moments_of(values[name]) for name in self.moments}
        batches = self.gather(batch)
        for name, before in self.moments.items():
            self.moments[name] = merged([before, *(other[name] for other in batches)])

    def state_dict(self) -> dict[str, Any]:
        return {
            name: {"count": m.count, "mean": m.mean, "m2": m.m2} for name, m in self.moments.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state.keys() != self.moments.keys():
            raise UserError(
                f"the saved rewards have other scaled terms ({', '.join(state) or 'none'}) than "
                f"these ({', '.join(self.moments) or 'none'})."
            )
        self.moments = {name: Moments(**numbers) for name, numbers in state.items()}


def check_weight(name: str, weight: Any, scale: Any = None) -> None:
    """Say what is wrong with a weight or a scale, if anything is."""
    if isinstance(weight, bool) or not isinstance(weight, Real) or not math.isfinite(weight):
        raise UserError(f"the weight of reward {name!r} is {weight!r}; it must be a number.")
    if scale is not None and scale not in SCALES:
        raise UserError(
            f"the scale of reward {name!r} is {scale!r}; there is: {', '.join(SCALES)}."
        )


def _filled(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns with what TRL always passes: the seeker post is the prompt of a rewrite."""
    prompts = {"prompts": columns["seeker_post"]} if "seeker_post" in columns else {}
    return prompts | {"trainer_state": None, "log_extra": None, "log_metric": None} | columns


def _total(contributions: Values) -> float | None:
    known = [value for value in contributions if value is not None]
    return math.fsum(known) if known else None


def in_training(log_metric: Any) -> bool:
    """TRL tells a reward nothing of training or evaluation; the trainer behind the log does."""
    model = getattr(getattr(log_metric, "__self__", None), "model", None)
    return bool(getattr(model, "training", False))


async def _together(
    rewards: Mapping[str, Reward], columns: Mapping[str, Any], parts: dict[str, Values]
) -> dict[str, Values]:
    answers = (
        awaited(name, reward, logging_parts(columns, name, parts))
        for name, reward in rewards.items()
    )
    return dict(zip(rewards, await gather_or_cancel(answers), strict=True))
