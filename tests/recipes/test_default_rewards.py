"""The default sum on the bundled sample: stock sentences must not win again."""

from pathlib import Path

import pytest

from recipes.evaluate_audit import Config, run

POSTS = 12


@pytest.mark.integration
def test_what_the_person_said_is_paid_more_than_stock_and_nonsense(tmp_path: Path) -> None:
    """Bars below what was measured (docs/results/reward.md), above what the sum before it had."""
    figures = run(Config(data="sample:test", limit=POSTS, json=str(tmp_path / "audit.json")))
    assert figures["n"] == POSTS
    assert figures["matched_beats_every_stock"] >= 65
    assert figures["matched_beats_wrong_post"] >= 75
    assert figures["matched_beats_every_nonsense"] >= 90
