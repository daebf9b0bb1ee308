"""One way of writing flags in all commands; every example under a help stands on its own line."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from recipes.cli import app
from recipes.shared.flags.dialect import examples, plain_flags

COMMAND = typer.main.get_command(app)


def commands(command: Any, *words: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    below = getattr(command, "commands", {})
    for name, one in below.items():
        yield from commands(one, *words, name)
    if not below:
        yield " ".join(words), command


FOUND = dict(commands(COMMAND))


@pytest.mark.parametrize("words", FOUND)
def test_every_example_of_a_help_can_be_typed(words: str) -> None:
    head, *lines = FOUND[words].epilog.split("\n\n")
    assert head in ("Example:", "Examples:")
    assert lines
    for line in lines:
        typed = shlex.split(line)
        place = next((k for k, word in enumerate(typed) if word == "rewriting"), -1)
        place += 1
        assert place
        if f"rewriting {words}" not in line:  # an example may begin with another command
            words_there = line.split("rewriting ", 1)[1].split()[0]
            assert words_there in COMMAND.commands  # type: ignore[attr-defined]
            continue
        rest = typed[place + len(words.split()) :]
        FOUND[words].make_context(words, plain_flags(FOUND[words], rest))


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        (["score", "--skip-bad-rows", "true", "--limit", "3"], ["--skip-bad-rows", "--limit", "3"]),
        (["score", "--skip_bad_rows", "false", "--limit", "3"], ["--limit", "3"]),
        (["score", "--overwrite"], ["--overwrite"]),
        (["score", "--input", "true"], ["--input", "true"]),
        (["score", "--overwrite", "--limit", "1"], ["--overwrite", "--limit", "1"]),
    ],
)
def test_a_flag_may_be_followed_by_true_or_false(typed: list[str], plain: list[str]) -> None:
    assert plain_flags(COMMAND, typed) == ["score", *plain]


def test_one_example_is_no_list() -> None:
    assert examples("a") == "Example:\n\na"
    assert examples("a", "b") == "Examples:\n\na\n\nb"
