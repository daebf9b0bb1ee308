"""benchmarks/reward_terms.py: its rewrites, its arithmetic, and the script itself for four rows."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from rewriting.errors import UserError
from rewriting.new_sentences import new_sentences
from rewriting.runtime.cache import ScoreCache

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))  # for the stopwatch beside it
    return runpy.run_path(str(BENCHMARKS / "reward_terms.py"))


def test_no_rewrite_comes_twice_and_each_has_one_new_sentence(script: dict[str, Any]) -> None:
    blocks = script["make_blocks"](rows=18, repetitions=3)
    assert [len(block["completions"]) for block in blocks] == [16, 18, 18, 18]
    for name in ("completions", "sentence"):
        texts = [text for block in blocks for text in block[name]]
        assert len(set(texts)) == len(texts) == 16 + 3 * 18
    for block in blocks[1:]:
        assert len(set(block["seeker_post"])) == 5  # four rewrites each, and two of the last
        rows = zip(block["completions"], block["response_post"], block["sentence"], strict=True)
        assert all(len(new_sentences(*row)) == 1 for row in rows)


def test_more_rows_than_the_sample_has_are_refused(script: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="too few for 20 × 96"):
        script["make_blocks"](rows=96, repetitions=20)
    with pytest.raises(UserError, match="1 or more, not 0 and 1"):
        script["make_blocks"](rows=0, repetitions=1)


def test_terms_by_name(script: dict[str, Any]) -> None:
    assert script["chosen_terms"]("fluency, contrast") == ["fluency", "contrast"]
    assert "kindness" in script["chosen_terms"]("")
    with pytest.raises(UserError, match="'judge' is not measured"):
        script["chosen_terms"]("judge")


def test_nothing_is_remembered_between_measurements(script: dict[str, Any]) -> None:
    asked: list[list[str]] = []

    def lengths(texts: list[str]) -> list[int]:
        asked.append(texts)
        return [len(text) for text in texts]

    shared = ScoreCache(lengths)
    work = {name: lambda columns: shared(columns["completions"]) for name in ("first", "second")}
    times = script["measure"](work, [{"completions": ["warm"]}, {"completions": ["a", "a", "b"]}])
    # The first work warms up; then each of the two reads both texts itself.
    assert asked == [["warm"], ["a", "b"], ["a", "b"]]
    assert {name: len(values) for name, values in times.items()} == {"first": 1, "second": 1}


def test_medians_and_ratios_by_hand(script: dict[str, Any]) -> None:
    found = script["speeds"]({script["REFERENCE"]: [0.5, 0.25, 4.0], "term": [1.0, 2.0, 0.125]})
    assert found["term"].seconds_per_row == 1.0
    assert found["term"].times_bare == 2.0
    assert found[script["REFERENCE"]].rows_per_second == 2.0
    assert found["term"].repetitions == [1.0, 2.0, 0.125]


@pytest.mark.integration
def test_the_script(
    script: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "speeds.json"
    arguments = ["--rows", "4", "--repetitions", "1", "--terms", "repetition"]
    script["main"]([*arguments, "--json", str(out)])
    figures = json.loads(out.read_text())
    assert {"bare minilm-l6", "repetition", "default sum", "former sum"} <= figures["speeds"].keys()
    assert "fluency" not in figures["speeds"]
    assert figures["speeds"]["bare minilm-l6"]["times_bare"] == 1.0
    assert "The default sum scores" in capsys.readouterr().out
