"""Progress goes to standard error, as lines where there is no terminal."""

import pytest

from rewriting.runtime.models.download_progress import say, steps


def run(shown: bool) -> None:
    with steps(shown) as (step, on_bytes):
        step("tiny: downloading", 10)
        on_bytes(5)
        step("tiny: converting", None)
    say("tiny: done", shown)


def test_a_log_gets_a_line_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    run(shown=True)
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [
        "tiny: downloading …",
        "tiny: converting …",
        "tiny: done",
    ]
    assert captured.out == ""


def test_a_terminal_gets_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    run(shown=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "tiny: converting" in line and "0/? bytes" in line]


def test_silence_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    run(shown=False)
    captured = capsys.readouterr()
    assert captured.err + captured.out == ""
