"""benchmarks/partner_step.py and two_processes.py: the scripts themselves on a tiny model."""

import json
import runpy
from pathlib import Path

import pytest

from tests.benchmarks.scripts import ROOT, SETTINGS, run_script
from tests.tiny_lm import write_tiny_llama


def test_both_ways_of_a_step_are_timed(tmp_path: Path) -> None:
    model = str(write_tiny_llama(tmp_path / "model"))
    sizes = ["--exchanges", "2", "--samples", "2", "--steps", "1"]
    arguments = ["--model", model, "--rewards", "{fluency: 1, repetition: 1}", *sizes]
    printed, found = run_script("partner_step.py", *arguments, output=tmp_path / "out.json")
    assert "seconds of a step" in printed
    for way in ("ours", "released"):
        parts = found["seconds"][way]
        assert parts["step"] == pytest.approx(sum(v for k, v in parts.items() if k != "step"))
    assert found["ratios"]["sampling"] > 1  # without a cache it cannot be as fast
    assert found["peak_megabytes"]["full"] > 100


def test_steps_are_counted_from_the_second_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    script = runpy.run_path(str(ROOT / "benchmarks" / "two_processes.py"))
    assert script["counted"]([0.0, 9.0, 11.0, 14.0]) == 2.5


def test_one_and_two_processes_take_the_same_steps(tmp_path: Path) -> None:
    model = {"model": str(write_tiny_llama(tmp_path / "model"))}
    settings = json.dumps(SETTINGS | model)
    sizes = ["--exchanges", "2", "--samples", "2", "--steps", "1", "--set", settings]
    printed, found = run_script("two_processes.py", *sizes, output=tmp_path / "out.json")
    assert "two are" in printed
    for clock, seconds in found["seconds"].items():
        assert found["ratios"][clock] == pytest.approx(seconds["1"] / seconds["2"])
    assert found["gap"] < 1e-4
