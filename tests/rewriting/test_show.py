"""Samples of a training run on the screen."""

import pytest

from rewriting.show import print_responses, print_samples, shortened

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


def test_a_table_of_responses(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "seeker_post": "I failed.",
        "response_post": "Oh.",
        "rewritten_response": "Why?",
        "reward": 1.5,
        "rewards": {"a": None, "b": 2.0},
    }
    print_responses("step 3", [row])
    printed = capsys.readouterr().out
    assert "Why?" in printed
    assert "total 1.500" in printed
    assert "b 2.000" in printed


def test_a_text_is_cut_at_a_word() -> None:
    assert shortened("one  two\nthree", 9) == "one two …"
    assert shortened("one two", 9) == "one two"
