"""Some hundreds of damaged files; `python -m tests.mutations` runs the thousands."""

from pathlib import Path

import pytest

from tests.mutations.run import run

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
