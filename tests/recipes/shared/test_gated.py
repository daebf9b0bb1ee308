"""The gate of `rewriting rewrite` and of training: its flags, what is shown and counted."""

import json
import logging
from pathlib import Path

import pytest

from policies.named import POLICIES
from recipes.cli import main
from recipes.shared.sources import load_splits
from rewriting import Exchange
from rewriting.safety import HELP
from tests.policies.says import CLEAR, CRISIS, VEILED, Says


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["rewrite", *arguments])
    assert isinstance(stop.value.code, int)
    return stop.value.code


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    monkeypatch.chdir(tmp_path)
    rows = [one.row() for one in (CRISIS, VEILED, CLEAR)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ("--input", "in.jsonl", "--output", "out.jsonl", "--policy", "generic", "--show", "0")


def lines() -> list[dict[str, dict[str, str]]]:
    return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


def test_the_command_holds_back_and_shows_help(
    files: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*files) == 0
    out = capsys.readouterr().out
    assert "0 unchecked (not English). `safety` says why." in out
    assert HELP in out
    verdicts = [line["safety"]["verdict"] for line in lines()]
    assert verdicts[0] == "crisis"
    assert verdicts[1] in ("possible", "crisis")  # the reader's to say
    assert verdicts[2] == "clear"
    assert [line["rewritten_response"] == line["response_post"] for line in lines()] == [
        True, True, False,
    ]  # fmt: skip
    Path("help.txt").write_text("Call 000.\n")
    assert run(*files, "--overwrite", "--help-text", "help.txt") == 0
    assert "Call 000." in capsys.readouterr().out
    assert lines()[0]["safety"]["help"] == "Call 000."


def test_the_command_allows_a_crisis_by_name_and_warns(
    files: tuple[str, ...], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert run(*files, "--allow-crisis") == 0
    assert "--allow-crisis" in caplog.text
    assert (
        "rewritten although they may be a crisis (--allow-crisis): 2 posts"
        in capsys.readouterr().out
    )
    assert [line["safety"].get("allow_crisis", False) for line in lines()] == [True, True, False]
    assert all(line["rewritten_response"] != line["response_post"] for line in lines())


def test_the_command_takes_a_classifier_and_fails_closed(files: tuple[str, ...]) -> None:
    Path("own.py").write_text("def broken(text):\n    raise OSError('no disk')\n")
    assert run(*files, "--classifier", "own.py:broken") == 0
    assert [line["safety"]["verdict"] for line in lines()] == ["crisis"] * 3
    assert lines()[2]["safety"]["reasons"][0] == "the classifier failed: OSError: no disk"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--classifier", "gone.py:f"), "no such file"),
        (("--help-text", "gone.txt"), "--help-text gone.txt"),
    ],
)
def test_mistakes_are_one_line(
    files: tuple[str, ...], capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], message: str
) -> None:
    assert run(*files, *flags) == 1
    assert message in capsys.readouterr().err
    assert not Path("out.jsonl").exists()


def test_one_text_shows_why_and_whom_to_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(POLICIES, "says", Says)
    texts = ("--seeker", CRISIS.seeker_post, "--response", "Try.", "--policy", "says")
    assert run(*texts) == 0
    out = capsys.readouterr().out
    assert "kill myself" in out
    assert "findahelpline.com" in out


def test_training_leaves_crises_out_and_counts_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [Exchange(f"I failed exam {n}.", "Try again.").row() for n in range(60)]
    rows += [Exchange(f"I want to die, day {n}.", "Try again.").row() for n in range(40)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sum(map(len, load_splits(str(path)).values())) == 100
    with caplog.at_level(logging.INFO):
        kept = load_splits(str(path), keep_crisis=False)
    assert sum(map(len, kept.values())) == 60
    assert all("exam" in one.seeker_post for part in kept.values() for one in part)
    assert "crises left out" in caplog.text


def test_the_bundled_sample_loses_nothing() -> None:
    assert load_splits("sample", keep_crisis=False) == load_splits("sample")
