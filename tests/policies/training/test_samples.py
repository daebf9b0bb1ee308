"""Samples on the screen and as lines of a file."""

import json
from pathlib import Path

import pytest

from policies.training.reinforce.log import headline
from policies.training.samples import SampleFile, print_samples, shortened

ROW = {
    "step": 3,
    "seeker_post": "I failed. " * 60,
    "response_post": "Study.",
    "rewritten_response": "Oh dear [bold]. Study.",
    "reward": 1.25,
    "rewards": {"kindness": 2.0, "coherence": None},
}


def test_samples_on_the_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    print_samples("step 3: reward 1.250", [ROW])
    shown = capsys.readouterr().out
    assert "step 3: reward 1.250" in shown
    assert "Oh dear [bold]." in shown
    assert "kindness 2.000" in shown
    assert "coherence" not in shown
    assert "…" in shown


def test_a_text_is_cut_at_a_word() -> None:
    assert shortened("one  two\nthree", 9) == "one two …"
    assert shortened("one two", 9) == "one two"


def test_a_headline_says_what_is_known() -> None:
    assert headline({"step": 3, "reward": 1.0, "share_keep": 0.25}) == (
        "step 3: reward 1.000, share_keep 0.250"
    )


def test_samples_after_the_checkpoint_are_taken_out_again(tmp_path: Path) -> None:
    file = SampleFile(tmp_path, writes=True)
    file.add([{"step": 1}, {"step": 1}])
    state = file.state_dict()
    file.add([{"step": 2}])
    again = SampleFile(tmp_path, writes=True)
    again.load_state_dict(state)
    again.add([{"step": 2, "text": "ü"}])
    steps = [json.loads(line)["step"] for line in again.path.read_text().splitlines()]
    assert steps == [1, 1, 2]
    fresh = SampleFile(tmp_path, writes=True)  # a new run in the folder begins a new file
    fresh.add([{"step": 9}])
    assert again.path.read_text() == '{"step": 9}\n'
    silent = SampleFile(tmp_path / "other", writes=False)
    silent.add([{"step": 1}])
    assert not silent.path.exists()
