"""Cases of a subject, one after another, each with a time limit of its own."""

import random
import shutil
import signal
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutations.subjects import SUBJECTS

SECONDS = 20
"""Of a processor, for a case. On a busy machine a case waits for one, and is not slow for that."""
PATIENCE = 600
"""Of the clock: a case that waits so long uses no processor, and hangs."""
SHOWN = 3


class TooSlow(BaseException):
    """No error that the code under test could take for one of its own."""


@contextmanager
def time_limit(seconds: float, patience: float) -> Iterator[None]:
    """Raise TooSlow after so many seconds of a processor, or so many of the clock."""

    def late(number: int, _: object) -> None:
        limit = f"{seconds} of a processor" if number == signal.SIGPROF else f"{patience}"
        raise TooSlow(f"more than {limit} seconds")

    timers = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, late) for number in timers}
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, patience)
    try:
        yield
    finally:
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def run(subject: str, count: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """How many cases ended in which way, and what went wrong, with the seed to see it again."""
    case = SUBJECTS[subject](folder / "whole")
    ended: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(seed, seed + count):
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            with time_limit(SECONDS, PATIENCE):
                ended[case(random.Random(f"{subject} {number}"), work)] += 1
            assert not (work / "it ran").exists(), "code of a file was run"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            ended["WRONG"] += 1
            wrong.append(f"{subject}, seed {number}: {error!r}\n{traceback.format_exc()}")
    return ended, wrong
