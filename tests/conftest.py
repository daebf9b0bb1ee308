"""Fixtures that many tests share."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

# Before torch is imported, and for every process that a test starts: models this small are faster
# on one thread, and runs can be compared bit by bit only with the same number of threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")

Rows = Sequence[Mapping[str, Any]]


@pytest.fixture
def jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows to a .jsonl file and gives its path."""

    def write(rows: Rows, name: str = "rows.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def papers_data() -> Path:
    """The folder with the papers' data sets, where there is one: they cannot be bundled."""
    folder = Path(os.environ.get("REWRITING_TEST_DATA", "data"))
    if not (folder / "epitome").is_dir():
        pytest.skip("REWRITING_TEST_DATA names no folder with epitome/ and empathetic_dialogues/")
    return folder
