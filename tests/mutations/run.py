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
SHOWN = 3


class TooSlow(BaseException):
    """No error that the code under test could take for one of its own."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TooSlow(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


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
            with time_limit(SECONDS):
                ended[case(random.Random(f"{subject} {number}"), work)] += 1
            assert not (work / "it ran").exists(), "code of a file was run"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            ended["WRONG"] += 1
            wrong.append(f"{subject}, seed {number}: {error!r}\n{traceback.format_exc()}")
    return ended, wrong
