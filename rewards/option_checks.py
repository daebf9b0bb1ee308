"""Whether a term can take the options that a mapping of rewards gives it, before it is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from rewards.calling import CallOptions
from rewards.loading import suggestion
from rewriting.errors import UserError

NAMED: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD
CALL_OPTIONS: Final = tuple(field.name for field in fields(CallOptions))
COMMON_OPTIONS: Final = ("weight", "scale", "name", *CALL_OPTIONS)
"""The options of every term, read here; the others are the term's own."""


def check_options(options: Mapping[str, Any], own: Iterable[str]) -> None:
    """Refuse an option that is neither the term's own nor one of all terms."""
    known = list(dict.fromkeys([*own, *COMMON_OPTIONS]))
    for option in options:
        if option not in known:
            raise UserError(f"it has no option {option!r}. {suggestion(option, known)}")


def check_call(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that a function cannot take as keywords, or with which a class is not made.

    A function whose rest is `**_` leaves it unread, so an option in there is a typo.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some that are written in C have none
        return
    if isinstance(function, type):
        signature.bind(**options)
        return
    parameters = signature.parameters.values()
    if any(one.kind is one.VAR_KEYWORD and one.name.strip("_") for one in parameters):
        return
    known = [one.name for one in parameters if one.kind in (one.KEYWORD_ONLY, NAMED)]
    check_options(options, known)
