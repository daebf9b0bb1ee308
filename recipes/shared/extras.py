"""Optional dependencies: one line says what to install where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rewriting.errors import UserError


@contextmanager
def extra_needed(extra: str) -> Iterator[None]:
    """Around imports that need an extra of the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error.name} is missing: pip install 'empathic-rewriting[{extra}]' installs it."
        ) from error
