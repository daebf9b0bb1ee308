"""The reward functions of `train.py grpo`: one for each term, and one for what cannot be read.

TRL hands them the answers of the model. What an answer comes to is worked out once for a batch, and
every term is called with the rewritten replies and with every column of the exchanges, as they are:
TRL's tables would want one type in a column, and take some names for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from recipes.train.grpo.actions import Actions
from rewards.protocol import is_async
from rewards.reward_sum import RewardSum
from rewards.term_functions import TermFunction, term_functions
from rewriting.edits import Operation
from rewriting.errors import UserError
from rewriting.exchange import Exchange, Rewrite

UNPARSABLE: Final = "unparsable"
Reading = tuple[Rewrite, str]


class Readings:
    """What the answers of a batch come to; the last batch is kept for the next function."""

    def __init__(self, exchanges: Sequence[Exchange], actions: Actions) -> None:
        from rewriting.data.columns import column_names

        self.exchanges = exchanges
        self.actions = actions
        self.names = column_names(exchanges)
        self._batch: tuple[tuple[str, ...], tuple[int, ...]] | None = None
        self._read: list[Reading] = []

    def of(self, completions: Sequence[str], row: Sequence[int]) -> list[Reading]:
        batch = tuple(completions), tuple(row)
        if batch != self._batch:
            pairs = zip(row, completions, strict=True)
            self._read = [self.actions.read(self.exchanges[one], text) for one, text in pairs]
            self._batch = batch
        return self._read

    def columns(self, completions: Sequence[str], row: Sequence[int]) -> dict[str, list[Any]]:
        """What a term is called with: the columns of an edit policy where the answers are edits."""
        rewrites = [rewrite for rewrite, _ in self.of(completions, row)]
        known = [rewrite.exchange.row() for rewrite in rewrites]
        data: dict[str, list[Any]] = {name: [one.get(name) for one in known] for name in self.names}
        data["completions"] = [rewrite.rewritten_response for rewrite in rewrites]
        if self.actions.tells_sentence:
            data["sentence"] = [rewrite.new_text for rewrite in rewrites]
        return data


def reward_functions(
    reward: RewardSum, readings: Readings, unparsable_penalty: float
) -> list[TermFunction]:
    """The terms of a sum as TRL is to call them; for edits, `unparsable` beside them."""
    functions = [
        TermFunction(_judging(term.function, readings), term.weight)
        for term in term_functions(reward)
    ]
    if not readings.actions.tells_sentence:
        return functions
    if UNPARSABLE in reward.terms:
        raise UserError(
            f"the name {UNPARSABLE!r} is taken by the term for answers that cannot be read, whose "
            "weight is -unparsable_penalty: give yours another `name`."
        )
    return [*functions, TermFunction(_unparsable(readings), -unparsable_penalty)]


def _judging(function: Callable[..., Any], readings: Readings) -> Callable[..., Any]:
    """A reward of rewritten replies as a reward of answers."""

    def judge(completions: Sequence[str], row: Sequence[int], **columns: Any) -> Any:
        return function(**{**columns, **readings.columns(completions, row)})

    async def judge_async(completions: Sequence[str], row: Sequence[int], **columns: Any) -> Any:
        return await judge(completions, row, **columns)

    chosen: Any = judge_async if is_async(function) else judge
    chosen.__name__ = chosen.__qualname__ = function.__name__
    wrapped: Callable[..., Any] = chosen
    return wrapped


def _unparsable(readings: Readings) -> Callable[..., list[float]]:
    """1 for an answer that cannot be read, 0 for one that can: its mean is their share."""

    def unparsable(
        completions: Sequence[str],
        row: Sequence[int],
        log_extra: Any = None,
        log_metric: Any = None,
        **_: Any,
    ) -> list[float]:
        read = readings.of(completions, row)
        if log_extra is not None:
            log_extra("problem", [problem for _, problem in read])
        if log_metric is not None:
            for name, value in kinds_of_edits(read).items():
                log_metric(name, value)
        return [float(bool(problem)) for _, problem in read]

    return unparsable


def kinds_of_edits(read: Sequence[Reading]) -> dict[str, float]:
    """Insertions and replacements per answer, and the share of answers that keep the reply."""
    edits = [edit for rewrite, _ in read for edit in rewrite.edits]
    inserted = sum(edit.operation is Operation.INSERT for edit in edits)
    kept = sum(not rewrite.edits and not problem for rewrite, problem in read)
    return {
        "edits/inserted": inserted / len(read),
        "edits/replaced": (len(edits) - inserted) / len(read),
        "edits/kept": kept / len(read),
    }
