"""What the options of rewards may be: kinds of values that can be told right from wrong.

The options of the built-in terms are declared with these in named.py. So a wrong value is found in
milliseconds, before torch is imported or a model loaded. The classes of the terms use them too, for
whoever makes a term by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS


@dataclass(frozen=True, slots=True)
class Kind:
    """What an option may be: in words that follow "it is", and as a test of a value."""

    words: str
    fits: Callable[[Any], bool]

    def check(self, option: str, value: Any) -> None:
        """Refuse a value that is not of this kind."""
        if not self.fits(value):
            raise UserError(f"{option} is {self.words}, not {value!r}.")

    def or_none(self) -> Kind:
        """A kind that also allows null."""
        return Kind(f"{self.words}, or null", lambda value: value is None or self.fits(value))


def number(words: str, fits: Callable[[float], bool]) -> Kind:
    """A finite number that meets a condition. True and False are none."""
    return Kind(words, lambda value: _is_real(value) and math.isfinite(value) and fits(value))


def whole_number(least: int) -> Kind:
    return Kind(
        f"a whole number from {least} on", lambda value: _is_whole(value) and value >= least
    )


def one_of(*names: str) -> Kind:
    return Kind(" or ".join(names), lambda value: isinstance(value, str) and value in names)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    listed = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    return listed and all(isinstance(one, str) and one.strip() for one in value)


def _is_weights(value: Any) -> bool:
    """Mechanisms that are not named have the weight 1."""
    named = isinstance(value, Mapping) and set(value) <= set(MECHANISMS)
    if not named or not all(FROM_0.fits(weight) for weight in value.values()):
        return False
    return any(value.get(mechanism, 1) for mechanism in MECHANISMS)


FLAG: Final = Kind("true or false", lambda value: isinstance(value, bool))
NUMBER: Final = number("a number", lambda value: True)
FROM_0: Final = number("a number from 0 on", lambda value: value >= 0)
SHARE: Final = number("a number from 0 to 1", lambda value: 0 <= value <= 1)
PROBABILITY: Final = number("a probability above 0", lambda value: 0 < value <= 1)
SECONDS: Final = number("a number of seconds above 0", lambda value: value > 0)
COUNT: Final = whole_number(1)
COUNT_OR_0: Final = whole_number(0)
TEXT: Final = Kind("a text", lambda value: isinstance(value, str))
TEXTS: Final = Kind("a list of texts, none of them blank", _is_texts)
WEIGHTS: Final = Kind(
    f"a number from 0 on for some of {', '.join(MECHANISMS)}, not 0 for all", _is_weights
)
