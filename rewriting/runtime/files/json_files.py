"""JSON that somebody else wrote: read within bounds, so that no file can bring a command down.

`json.loads` gives up on deep nesting with a RecursionError, and passes values on that fail much
later: half a character that no file can hold, a number that no float can. Here each is a ValueError
that says so, whoever reads the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

MOST_LEVELS: Final = 64
LARGEST_NUMBER: Final = 10**300
LARGEST_SETTINGS: Final = 16 << 20
"""Bytes of a file of settings. A tokenizer's is larger, and not read by this module."""


def parse_json(text: str) -> Any:
    """The value of a JSON text; a ValueError of one line where there is none."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"nested more than {MOST_LEVELS} levels deep") from error
    if problem := problem_of(value):
        raise ValueError(f"it {problem}")
    return value


def read_json(path: Path) -> Any:
    """The value in a file of settings; a ValueError where there is none, an OSError as usual."""
    size = path.stat().st_size
    if size > LARGEST_SETTINGS:
        raise ValueError(f"{size:,} bytes are no settings")
    return parse_json(read_text(path))


def read_text(path: Path) -> str:
    """The text of a plain file. A pipe in its place would be waited for for ever."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path.name} is no plain file")
    return path.read_text(encoding="utf-8")


def problem_of(value: Any) -> str | None:
    """What makes a value unfit to be passed on, in words; None where it is fit."""
    level = [value]
    for _ in range(MOST_LEVELS):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, str):
                if not one.isascii() and _is_half(one):
                    return "holds half a character (a lone surrogate)"
            elif isinstance(one, int) and not -LARGEST_NUMBER < one < LARGEST_NUMBER:
                return "holds a number of more than 300 digits"
            elif isinstance(one, dict):
                inner += _parts(one)
            elif isinstance(one, list | tuple):
                inner += one
        if not inner:
            return None
        level = inner
    return f"is nested more than {MOST_LEVELS} levels deep"


def _parts(mapping: dict[Any, Any]) -> Iterable[Any]:
    return (*mapping.keys(), *mapping.values())


def _is_half(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def shown(value: Any, longest: int = 80) -> str:
    """A value as an error message shows it: never a page of it."""
    return cut(repr(value), longest)


def cut(text: str, longest: int = 200) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
