"""The real server is killed under load: what it acknowledged is there, once."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_kill_9_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """A small run of benchmarks/ab_server.py, which makes 200 kills under 20 raters."""
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "ab_server.py"))
    found = benchmark["survive"](tmp_path / "study", kills=5, raters=8)
    assert found["acknowledged"] >= 5 * 2
    for trouble in ("lost", "doubled", "unknown", "integrity problems", "refused"):
        assert found[trouble] == 0, found
