"""benchmarks/scaling.py: what it counts as work, its arithmetic, and the script on tiny models."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from rewriting import split_sentences
from tests.benchmarks.scripts import ROOT, SETTINGS, run_script
from tests.tiny_lm import write_tiny_llama
from tests.tiny_t5 import write_tiny_t5


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return runpy.run_path(str(ROOT / "benchmarks" / "scaling.py"))


def test_responses_get_longer_and_share_no_sentence(script: dict[str, Any]) -> None:
    rows = script["responses_of"](8)
    first, second = next(rows), next(rows)
    parts = [split_sentences(row.response_post).texts for row in (first, second)]
    assert [len(part) for part in parts] == [8, 8]
    assert not set(parts[0]) & set(parts[1])


def test_one_size_grows_and_the_quicker_of_two_small_steps_counts(script: dict[str, Any]) -> None:
    asked: list[tuple[int, int]] = []

    def step(rows: int, tokens: int) -> dict[str, float]:
        asked.append((rows, tokens))
        update = 9.0 if len(asked) == 1 else 1.0
        parts = {"sampling": float(rows * tokens), "update": update}
        found: dict[str, float] = script["with_sum"](parts, 5)
        return found

    found = script["grown"](step, {"rows": 3, "tokens": 2}, "tokens")
    assert asked == [(3, 2), (3, 2), (3, 8), (3, 32)]
    assert found[1] == {"sampling": 6.0, "update": 1.0, "step": 7.0, "tokens written": 5.0}
    assert script["growth"](found, "sampling") == {"4 : 1": 4.0, "16 : 1": 16.0, "16 : 4": 4.0}


@pytest.mark.parametrize(
    ("seconds", "marked"),
    [((1, 4, 16), False), ((1, 2, 4), False), ((1, 16, 256), True), ((10, 14, 62), True)],
)
def test_what_grows_faster_than_the_work_is_marked(
    script: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    seconds: tuple[float, ...],
    marked: bool,
) -> None:
    # The last one only from 4 × to 16 ×: at 1 × something else takes the time.
    found = {factor: {"step": s} for factor, s in zip((1, 4, 16), seconds, strict=True)}
    script["report"]("samples", 2, found)
    printed = capsys.readouterr().out
    assert printed.startswith("samples 2, 8, 32")
    assert printed.rstrip().endswith("!") is marked


def test_the_script_itself(tmp_path: Path) -> None:
    model = {"model": str(write_tiny_llama(tmp_path / "llama"))}
    arguments = ["--only", "samples,tokens", "--set", json.dumps(SETTINGS | model)]
    arguments += ["--ppo-model", str(write_tiny_t5(tmp_path / "t5"))]
    printed, found = run_script("scaling.py", *arguments, output=tmp_path / "out.json")
    assert printed.count("16 : 4") == 2
    assert set(found) == {"samples", "tokens"}
    parts = {"sampling", "rewards", "reference", "update", "step", "tokens written"}
    assert set(found["samples"]["growth"]) == parts
    assert found["tokens"]["growth"]["sampling"]["16 : 4"] > 1.5
    assert found["tokens"]["growth"]["tokens written"]["16 : 4"] == 4
