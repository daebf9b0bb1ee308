"""Some hundreds of damaged files; `python -m tests.mutations` runs the thousands."""

import threading
from pathlib import Path

import pytest

from tests.mutations.run import TooSlow, run, time_limit

COUNTS = {
    "data files": 400,
    "checkpoints": 60,
    "jobs": 100,
    "policy folders": 20,
    "rewriter folders": 20,
    "reward models": 60,
    "model caches": 20,
    "model folders": 20,
}


@pytest.mark.parametrize("subject", COUNTS)
def test_damage_is_found_and_said_in_one_line(subject: str, tmp_path: Path) -> None:
    ended, wrong = run(subject, COUNTS[subject], 0, tmp_path)
    assert wrong == [], wrong[0]
    assert len(ended) > 1 or "refused" in ended, "nothing was damaged"


def work_without_end() -> None:
    while True:
        pass


def test_work_without_end_and_waiting_without_end_are_both_found() -> None:
    with pytest.raises(TooSlow, match=r"0\.1 of a processor"), time_limit(0.1, 600):
        work_without_end()
    with pytest.raises(TooSlow, match=r"more than 0\.1 seconds"), time_limit(600, 0.1):
        threading.Event().wait()
