"""Every command of `rewriting`, as a user types it."""

from collections.abc import Iterator
from typing import Any

import typer

from recipes.cli import app


def commands() -> list[list[str]]:
    """The words of each command; none for `rewriting` alone, one for a group such as `ab`."""
    return [words for words, _ in with_commands()]


def with_commands() -> list[tuple[list[str], Any]]:
    """The words of each command, with the command as click knows it."""
    return list(_below([], typer.main.get_command(app)))


def _below(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _below([*words, name], inner)
