"""The reward protocol: what a term is called with, and what it may answer.

A reward is a callable, sync or async, called with keywords alone, as TRL's GRPOTrainer and
RLOOTrainer call theirs:

    prompts, completions, completion_ids   lists, one entry per row
    every column of the data               likewise; here seeker_post and response_post, and
                                           `sentence`, the new one, where an edit policy made it
    trainer_state, log_extra, log_metric   the trainer's, or None; a RewardSum always gives a
                                           `log_extra`, by which a term reports parts of its value

`completions` are the rewritten responses. It answers one finite number or None per completion;
None means that the reward does not apply to that row. Whatever else it answers or raises becomes a
RewardError that names it: an exception is never turned into a score.
"""

from __future__ import annotations

import functools
import inspect
import math
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from rewards.event_loop import run
from rewriting.errors import UserError

Values = Iterable[float | None]
T = TypeVar("T")

SHOWN_COLUMNS: Final = ("sentence", "seeker_post", "response_post")
SHOWN_CHARACTERS: Final = 60


class Reward(Protocol):
    """Anything that scores a batch of completions: a function, or an object that is callable."""

    def __call__(self, *args: Any, **columns: Any) -> Values | Awaitable[Values]: ...


@runtime_checkable
class ComparesRows(Protocol):
    """A reward that compares rows in two steps: `compare(read(…))` is what calling it gives.

    In training on several processes, each reads its own rows, and what it read is exchanged: the
    work is shared, and only small facts travel. `compares_rows` has to be True as well. A reward
    that only says `compares_rows` is called with the rows of all processes on each of them.
    """

    def read(self, **columns: Any) -> Sequence[Any]:
        """A fact for each row, of plain numbers and texts."""
        ...

    def compare(self, facts: Sequence[Any]) -> Values:
        """The value of each row, from the facts of all."""
        ...


class RewardError(UserError):
    """A reward raised, or answered something that is no reward."""


def name_of(reward: Any) -> str:
    """The name of a reward in logs, found as TRL finds it."""
    while isinstance(reward, functools.partial):
        reward = reward.func
    return str(getattr(reward, "__name__", type(reward).__name__))


def compares_rows(reward: Any) -> bool:
    """Whether its value for a row depends on the other rows of the call, as it says itself."""
    while isinstance(reward, functools.partial):
        reward = reward.func
    return bool(getattr(reward, "compares_rows", False))


def is_async(reward: Any) -> bool:
    """Whether calling a reward gives something to await, decided as TRL decides it."""
    while isinstance(reward, functools.partial):
        reward = reward.func
    return inspect.iscoroutinefunction(reward) or inspect.iscoroutinefunction(reward.__call__)


def texts(completions: Sequence[Any]) -> list[str]:
    """Completions as plain strings, whether they are strings or conversations.

    Of a conversation, what the assistant says counts, one message per line.
    """
    return [_text(completion) for completion in completions]


def _text(completion: Any) -> str:
    if isinstance(completion, str):
        return completion
    if not isinstance(completion, list | tuple):
        raise TypeError(f"a completion is a text or a list of messages, not {completion!r}")
    spoken = [m for m in completion if m.get("role", "assistant") == "assistant"]
    return "\n".join(_content(message.get("content")) for message in spoken)


def _content(content: Any) -> str:
    """The text of a message, whose content may be in parts, or missing beside a tool call."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(part.get("text", "") for part in content)


def by_row(column: Any, count: int) -> bool:
    """Whether a keyword has an entry for each of the rows, rather than being the trainer's."""
    if isinstance(column, str) or not isinstance(column, Sequence):
        return False
    return len(column) == count


def checked(
    name: str, values: Any, columns: Mapping[str, Any], first: int = 0
) -> list[float | None]:
    """What a reward answered, as floats and None, or a RewardError that shows the row.

    `columns` are the keywords that the reward was called with. `first` is the number of their
    first row, where they are a part of a batch.
    """
    rows = len(columns["completions"])
    if isinstance(values, str | bytes | Mapping | set) or not isinstance(values, Iterable):
        raise RewardError(
            f"reward {name!r} gave {_shortened(values)} for {rows} completions; it must give a "
            f"list with one number or None for each. {shown_row(columns, 0, first)}"
        )
    found = list(values)
    if len(found) != rows:
        raise RewardError(
            f"reward {name!r} gave {len(found)} values for {rows} completions; it must give one "
            f"number or None for each. {shown_row(columns, min(len(found), rows - 1), first)}"
        )
    return [_number(name, value, columns, row, first) for row, value in enumerate(found)]


def is_finite(value: Any) -> bool:
    """Whether it is a finite number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _number(
    name: str, value: Any, columns: Mapping[str, Any], row: int, first: int
) -> float | None:
    if value is None:
        return None
    plain = value.item() if getattr(value, "size", None) == 1 else value  # of numpy
    if callable(getattr(value, "numel", None)) and value.numel() == 1:  # of torch
        plain = value.item()
    if not isinstance(plain, Real) or not math.isfinite(plain):
        raise RewardError(
            f"reward {name!r} gave {_shortened(value)} for row {first + row}; a reward is a finite "
            f"number, or None where it does not apply. {shown_row(columns, row, first)}"
        )
    return float(plain)


def failure(
    name: str, error: Exception, columns: Mapping[str, Any], first: int = 0, tries: int = 1
) -> RewardError:
    """The RewardError for an exception that a reward raised; raise it `from` the exception.

    `tries` is how often the reward was called before it was given up.
    """
    if isinstance(error, UserError):
        return RewardError(f"reward {name!r}: {error}")
    hint = ""
    if isinstance(error, TypeError):
        hint = f" The columns of this batch: {', '.join(columns)}."
        if "unexpected keyword argument" in str(error):
            hint = f" A reward leaves the keywords it does not need to `**_`.{hint}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    after = f" in the last of {tries} tries" if tries > 1 else ""
    row = "First row of its batch: " if len(columns["completions"]) > 1 else ""
    return RewardError(
        f"reward {name!r} raised {type(error).__name__}: {error} ({frame.filename}, line "
        f"{frame.lineno}){after}.{hint} {row}{shown_row(columns, 0, first)}"
    )


def shown_row(columns: Mapping[str, Any], row: int, first: int = 0) -> str:
    """A row as one line: its number, its completion and its posts, shortened."""
    if not len(columns["completions"]):
        return "There are no rows."
    parts = [f"completion {_shortened(columns['completions'][row])}"]
    for name in SHOWN_COLUMNS:
        column = columns.get(name)
        if isinstance(column, Sequence) and row < len(column):
            parts.append(f"{name} {_shortened(column[row])}")
    return f"Row {first + row}: {', '.join(parts)}."


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


def answer(reward: Reward, columns: Mapping[str, Any]) -> Any:
    """What a reward gives for a batch: its values, or what is to be awaited for them.

    The code of a generator runs only as its values are taken, so they are taken here.
    """
    values = reward(**columns)
    return list(values) if isinstance(values, Iterator) else values


def called(name: str, reward: Reward, columns: Mapping[str, Any]) -> list[float | None]:
    """Call a reward and check what it answers, of an async one by awaiting it."""
    try:
        values = answer(reward, columns)
        if inspect.isawaitable(values):
            values = run(result_of(values))
    except RewardError:  # a sum inside a sum has named its term already
        raise
    except Exception as error:
        raise failure(name, error, columns) from error
    return checked(name, values, columns)


def facts_of(name: str, reward: ComparesRows, columns: Mapping[str, Any]) -> list[Any]:
    """What a reward that compares rows reads of these."""
    try:
        return list(reward.read(**columns))
    except RewardError:
        raise
    except Exception as error:
        raise failure(name, error, columns) from error


async def awaited(name: str, reward: Reward, columns: Mapping[str, Any]) -> list[float | None]:
    """The same of an async reward, to be awaited together with others."""
    try:
        values = answer(reward, columns)
        if inspect.isawaitable(values):
            values = await values
    except RewardError:  # a sum inside a sum has named its term already
        raise
    except Exception as error:
        raise failure(name, error, columns) from error
    return checked(name, values, columns)


async def result_of(values: Awaitable[T]) -> T:
    """Wrap anything that can be awaited in a coroutine, since event loops run nothing else."""
    return await values


def guarded(reward: Reward, name: str | None = None) -> Callable[..., Any]:
    """A reward whose every answer is checked: for `reward_funcs` of a TRL trainer.

    TRL lets a NaN pass as "does not apply" and shows no row when a reward raises. Async rewards
    stay async, so that TRL awaits them together. What a reward logs is logged under its name: two
    that log the same column would spoil TRL's table.
    """
    shown_name = name or name_of(reward)

    def named(columns: dict[str, Any]) -> dict[str, Any]:
        log_extra = columns.get("log_extra")
        if log_extra is None:
            return columns
        return columns | {
            "log_extra": lambda column, values: log_extra(f"{shown_name}/{column}", values)
        }

    async def guard_async(**columns: Any) -> Any:
        return await awaited(shown_name, reward, named(columns))

    def guard(**columns: Any) -> Any:
        return called(shown_name, reward, named(columns))

    chosen: Callable[..., Any] = guard_async if is_async(reward) else guard
    chosen.__name__ = chosen.__qualname__ = shown_name
    return chosen
