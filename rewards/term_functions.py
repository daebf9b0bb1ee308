"""The terms of a sum as reward functions of their own, for TRL's trainers.

A sum that goes into `reward_funcs` as it is comes to one number a row. Term by term, TRL logs each,
weighs it by `reward_weights`, and can normalise each before they are added
(`multi_objective_aggregation="normalize_then_sum"`):

    terms = term_functions(build_rewards({"empathy_change": 1.0, "fluency": 10.0}))
    GRPOTrainer(
        reward_funcs=[term.function for term in terms],
        args=GRPOConfig(reward_weights=[term.weight for term in terms]),
        …
    )

The terms are the very objects of the sum, with their models and caches: nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rewards.event_loop import in_thread
from rewards.protocol import is_async
from rewards.reward_sum import RewardSum, Term, Values, in_training


@dataclass(frozen=True, slots=True)
class TermFunction:
    """A reward function under TRL's protocol, named as the term is, and its weight.

    Weight 0 is a metric for TRL as well: computed and logged, not rewarded.
    """

    function: Callable[..., Any]
    weight: float

    @property
    def name(self) -> str:
        return str(self.function.__name__)


def term_functions(reward: RewardSum) -> list[TermFunction]:
    """One function a term, in the order of the sum.

    Each answers the checked and scaled values of its term. It logs the parts of a term as
    `rewards/TERM/PART/mean`, and what a scaled term gave before as `rewards/TERM/unscaled`. Async
    terms stay async, so that TRL awaits them together; one with a scale is awaited by itself,
    because all processes have to count its values in the same order.
    """
    return [
        TermFunction(_function(name, term, reward), term.weight)
        for name, term in reward.terms.items()
    ]


def _function(name: str, term: Term, whole: RewardSum) -> Callable[..., Any]:
    alone = RewardSum({name: replace(term, weight=1.0)}, name=name, gather=whole.gather)

    def scored(**columns: Any) -> Values:
        log_metric = columns.get("log_metric")
        scores = alone.score(update=in_training(log_metric), **columns)
        if log_metric is not None:
            for part, value in scores.means().items():
                if part != name:
                    log_metric(f"rewards/{part}/mean", value)
                elif term.scale:
                    log_metric(f"rewards/{name}/unscaled", value)
        return scores.totals

    async def scored_async(**columns: Any) -> Any:
        return await in_thread(lambda: scored(**columns))

    chosen: Any = scored_async if is_async(term.reward) and not term.scale else scored
    chosen.__name__ = chosen.__qualname__ = name
    function: Callable[..., Any] = chosen
    return function
