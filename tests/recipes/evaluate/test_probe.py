"""`evaluate.py probe` for real, with an identifier that reads words only."""

import json
from pathlib import Path
from typing import Any

import pytest

from recipes.entry import run_evaluation
from rewards.identifiers import named
from tests.recipes.words import Words


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(named, "load_identifier", lambda name, **_: Words())

    def command(*arguments: str) -> Any:
        file = tmp_path / "out.json"
        flags = ["--contexts", "sample:enquiries", "--rewards", "{}", "--json", str(file)]
        run_evaluation(["probe", *flags, *arguments])
        return json.loads(file.read_text(encoding="utf-8"))

    return command


def test_context_sensitivity_is_a_line_of_its_own(
    probe: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = probe("--replies", "sample:test")
    line = figures["context_sensitivity"]
    # One seed of the nine says sorry, one of three of the first mechanism.
    assert line["flagged_before"] == 0
    assert line["flagged_after"] == pytest.approx(100 / 9)
    # What reads no post gives a moved reply the same.
    assert line["auroc"] == pytest.approx(50)
    assert line["expected_in_place"] == line["expected_moved"]
    assert "context-sensitivity" in capsys.readouterr().out


def test_without_replies_the_line_tells_of_insertions_alone(probe: Any) -> None:
    figures = probe("--replies", "")
    assert set(figures["context_sensitivity"]) == {"flagged_before", "flagged_after"}
    assert "mismatched" not in figures
