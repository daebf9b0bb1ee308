"""A progress bar on a terminal, a line now and then in a log, silence in tests that capture it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(text: str, total: int, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Show progress on standard error. Yields a function that advances by so many rows."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(file=sys.stderr)
    if done:
        print(f"{text}: going on after {done:,} of {total:,}", file=sys.stderr)
    if not console.is_terminal:
        yield _log_lines(text, total, done)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(text, total=total, completed=done)
        yield lambda rows: bar.advance(task, rows)


@contextmanager
def progress_of_first(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """The same where several processes share a job and the first shows how far all of them are."""
    from rewriting.runtime.processes import process_index

    if process_index():
        yield lambda rows: None
        return
    with progress_bar(text, total) as advance:
        yield advance


def _log_lines(text: str, total: int, done: int) -> Callable[[int], None]:
    """A line at each further tenth of the way."""
    passed = done

    def advance(rows: int) -> None:
        nonlocal passed
        tenth = passed * 10 // total
        passed += rows
        if passed * 10 // total > tenth:
            print(f"{text}: {passed:,} of {total:,}", file=sys.stderr, flush=True)

    return advance
