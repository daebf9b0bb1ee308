"""The steps of a download, shown on standard error: standard output belongs to results."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def say(text: str, shown: bool = True) -> None:
    if shown:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def steps(
    shown: bool = True,
) -> Iterator[tuple[Callable[[str, int | None], None], Callable[[int], None]]]:
    """Two functions: begin a step (its text, its size in bytes if known), and tell bytes done.

    On a terminal a bar, which pulses where the size is unknown; in a log file a line per step.
    """
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(file=sys.stderr)
    if shown and not console.is_terminal:
        yield lambda text, size: say(f"{text} …"), lambda done: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:

        def step(text: str, size: int | None) -> None:
            for task in bar.task_ids:
                bar.remove_task(task)
            bar.add_task(text, total=size)

        yield step, lambda done: bar.update(bar.task_ids[-1], completed=done)
