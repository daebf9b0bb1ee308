"""Settings that stand in one place: default, help, bounds, and whether a resumed run may change it.

The settings of an algorithm, or of how a model is loaded, are a frozen dataclass of such fields. A
recipe's flat dataclass borrows them by name (`borrowed`), with another default where it wants one,
and hands them back (`given`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import MISSING, field, fields
from typing import Any, TypeVar

from rewriting.errors import UserError
from rewriting.runtime.loading import suggestion

T = TypeVar("T")


def setting(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    greatest: float | None = None,
    above: float | None = None,
    choices: Sequence[str] = (),
    may_change: bool = False,
) -> Any:
    """A field of a settings dataclass.

    least, greatest, above, choices: what the value must be. may_change: it changes neither weights
    nor log, so a run may go on with another value.
    """
    bounds = {"least": least, "greatest": greatest, "above": above, "choices": choices}
    return field(default=default, metadata={"help": help, "may_change": may_change} | bounds)


def borrowed(settings: type, name: str, default: Any = MISSING, help: str = "") -> Any:
    """The field of another dataclass: the same help and bounds, its default or another one."""
    (found,) = (one for one in fields(settings) if one.name == name)
    metadata = dict(found.metadata) | ({"help": help} if help else {})
    return field(default=found.default if default is MISSING else default, metadata=metadata)


def given(settings: type[T], config: Any, **changed: Any) -> T:
    """The settings of an algorithm from the fields of the same names in a recipe's config."""
    names = [one.name for one in fields(settings) if hasattr(config, one.name)]  # type: ignore[arg-type]
    return settings(**{name: getattr(config, name) for name in names} | changed)


def check_bounds(settings: Any) -> None:
    """Refuse values outside their bounds, before anything is loaded."""
    for one in fields(settings):
        value = getattr(settings, one.name)
        choices = one.metadata.get("choices")
        if choices and value not in choices:
            known = suggestion(str(value), list(choices))
            raise UserError(f"{one.name} cannot be {value!r}. {known}")
        least, greatest, above = map(one.metadata.get, ("least", "greatest", "above"))
        if value is None or (least is None and greatest is None and above is None):
            continue
        low = least is None or value >= least  # not <: nan is refused as well
        high = value < math.inf if greatest is None else value <= greatest
        if low and high and (above is None or value > above):
            continue
        if least is not None and greatest is not None:
            raise UserError(f"{one.name} must be from {least} to {greatest}, not {value}.")
        if above is not None:
            most = "" if greatest is None else f" and at most {greatest}"
            raise UserError(f"{one.name} must be above {above}{most}, not {value}.")
        raise UserError(f"{one.name} must be {least} or more, not {value}.")


def lasting(settings: Any) -> dict[str, Any]:
    """The settings that a run must share with the run it goes on from."""
    named = {one.name: one.metadata.get("may_change", False) for one in fields(settings)}
    return {name: getattr(settings, name) for name, changes in named.items() if not changes}
