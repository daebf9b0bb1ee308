"""A first pass counts, sets bad rows aside, and knows a source again."""

import json
from pathlib import Path

import pytest

from rewriting.data.survey import bad_file, survey
from rewriting.errors import UserError

GOOD = '{"id": %d, "seeker_post": "a", "response_post": "b"}\n'


def test_a_changed_source_has_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(GOOD % 1 + GOOD % 2)
    first = survey(str(path))
    assert (first.num_rows, first.num_bad_rows) == (2, 0)
    assert survey(str(path)).digest == first.digest
    assert survey(str(path), limit=1).digest != first.digest
    path.write_text(GOOD % 2 + GOOD % 1)
    assert survey(str(path)).digest != first.digest


@pytest.mark.parametrize(
    "change",
    [
        {"history": ["I want it to end."]},
        {"explorations": 1},
        {"rationales": {"explorations": ["b"]}, "explorations": 2},
        {"seeker_id": "s"},
        {"topic": "exam"},
        {"topic": "Exam"},
        {"response_post": "B"},
        {"response_post": "b "},
    ],
)
def test_every_column_is_in_the_digest(tmp_path: Path, change: dict[str, object]) -> None:
    """The gate reads history, and an output carries labels and other columns on."""
    path = tmp_path / "x.jsonl"
    row = {"id": "1", "seeker_post": "a", "response_post": "b", "explorations": 2, "topic": "e"}
    path.write_text(json.dumps(row))
    before = survey(str(path)).digest
    path.write_text(json.dumps(row | change))
    assert survey(str(path)).digest != before


def test_bad_rows_go_to_a_file_that_is_made_when_it_is_needed(tmp_path: Path) -> None:
    path, aside = tmp_path / "x.jsonl", bad_file(tmp_path / "out.jsonl")
    path.write_text(GOOD % 1)
    survey(str(path), skip_bad_rows=True, set_aside=aside)
    assert not aside.exists()
    path.write_text(GOOD % 1 + "broken\n")
    found = survey(str(path), skip_bad_rows=True, set_aside=aside)
    assert (found.num_rows, found.num_bad_rows) == (1, 1)
    assert len(list(found.exchanges())) == 1
    assert json.loads(aside.read_text())["line"] == 2
    with pytest.raises(UserError, match="line 2"):
        survey(str(path))


def test_nothing_good_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("broken\n")
    with pytest.raises(UserError, match="holds no exchange: all 1 rows are bad"):
        survey(str(path), skip_bad_rows=True)
