"""One way of writing flags in all commands, and one line for a mistake in them.

What train.py and evaluate.py take, `rewriting` takes as well: hyphens or underscores in a flag, and
`--overwrite` or `--overwrite true`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from recipes.shared.flags.fields import TRUTHS

SETTINGS: Final = {"token_normalize_func": lambda name: name.replace("_", "-")}
"""For typer: underscores in the names of flags count as hyphens."""


def examples(*commands: str) -> str:
    """The examples under a command's help, one a line: typer makes a paragraph of each."""
    return "\n\n".join(["Examples:" if len(commands) > 1 else "Example:", *commands])


def plain_flags(command: Any, arguments: Sequence[str]) -> list[str]:
    """The arguments without the `true` after a flag, and without a flag whose word is `false`."""
    words = list(arguments)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    before = list(arguments)[: len(arguments) - len(words)]
    flags = {name for one in command.params if getattr(one, "is_flag", False) for name in one.opts}
    kept: list[str] = []
    while words:
        word = words.pop(0)
        truth = TRUTHS.get(words[0].lower()) if words else None
        if truth is None or f"--{word.lstrip('-').replace('_', '-')}" not in flags:
            kept.append(word)
            continue
        words.pop(0)
        kept += [word] if truth else []
    return [*before, *kept]
