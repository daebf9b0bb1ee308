"""Options that several commands have, and commands whose options are the fields of a dataclass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

T = TypeVar("T")

IdentifierName = Annotated[
    str,
    typer.Option(
        help="Identifier that measures empathy: in-context, grounded, epitome, a folder or hub id "
        "of what train.py wrote, judge:MODEL, or ensemble:NAME,NAME."
    ),
]
Columns = Annotated[
    str,
    typer.Option(
        help="What your file calls our columns, where the names differ: "
        "seeker_post=post,response_post=reply. Case and spaces make no difference."
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of rows to use, starting from the first."),
]
SkipBadRows = Annotated[
    bool,
    typer.Option("--skip-bad-rows", help="Write bad rows to OUTPUT.bad.jsonl instead of stopping."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing OUTPUT.")]
Classifier = Annotated[
    str | None,
    typer.Option(help="A safety classifier of your own: path.py:function or module:function."),
]
HelpText = Annotated[
    str | None, typer.Option(help="A file with the help resources to show, instead of ours.")
]
Host = Annotated[
    str,
    typer.Option(
        help="Address to listen on: 127.0.0.1 answers this machine only, 0.0.0.0 answers all."
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")]
BehindProxy = Annotated[
    bool,
    typer.Option("--behind-proxy", help="Trust a local proxy to say which address a client has."),
]


def takes(options: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Make a command of many options from a function of one dataclass: a field, an option.

    Typer reads the options from the signature, which becomes that of the dataclass.
    """
    hints = get_type_hints(options, include_extras=True)

    def command_of(run: Callable[[T], None]) -> Callable[..., None]:
        @functools.wraps(run)
        def command(**values: Any) -> None:
            run(options(**values))

        parameters = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if one.default is MISSING else one.default,
                annotation=hints[one.name],
            )
            for one in fields(options)  # type: ignore[arg-type]
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = hints
        return command

    return command_of
