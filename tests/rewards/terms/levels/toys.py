"""Rows with targets, and how they score."""

from typing import Any

from rewards.terms.levels.level_alignment import LevelAlignment
from tests.rewards.fakes import FakeIdentifier

COLUMNS: dict[str, Any] = {
    "completions": ["I am sorry. Why?", "Stop.", "I am sorry."],
    "seeker_post": ["I failed.", "I failed.", "I lost."],
    "emotional_reactions": [2, 0, 1],
    "interpretations": [0, 0, 1],
    "explorations": [2, 0, 1],
}


def scores(combine: str, columns: dict[str, Any]) -> list[list[float]]:
    """What response i gets for the target of row j, one call for each target."""
    absolute, names = LevelAlignment(FakeIdentifier(), combine=combine), list(columns)[2:]
    rows = range(len(columns["completions"]))
    targets = [{name: [columns[name][j]] * len(rows) for name in names} for j in rows]
    found = [absolute(**(columns | target)) for target in targets]
    return [[found[j][i] or 0.0 for j in rows] for i in rows]
