"""`rewriting score` and `feedback`: the lines of the contract, resuming, sharing, colours."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from recipes.cli import main
from recipes.commands import score
from rewards.identifiers import named
from rewards.identifiers.ensemble import EnsembleIdentifier
from rewriting.data import load_exchanges
from rewriting.errors import UserError
from rewriting.exchange import MECHANISMS, Exchange
from tests.recipes.words import Words

ROOT = Path(__file__).parents[3]
START = """
import sys
sys.path.insert(0, {root!r})
from tests.recipes.words import Words, install
install()
{before}
from recipes.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "load_identifier", lambda name="words", **_: Words())


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    assert isinstance(stop.value.code, int)
    return stop.value.code


def write_rows(path: Path, count: int) -> Path:
    with path.open("w") as file:
        for i in range(count):
            reply = "I'm sorry." if i % 3 == 0 else "Study harder."
            file.write(json.dumps({"id": i, "seeker_post": "I failed.", "response_post": reply}))
            file.write("\n")
    return path


def test_a_line_of_the_contract(tmp_path: Path) -> None:
    output = tmp_path / "scores.jsonl"
    assert run("score", "--input", write_rows(tmp_path / "in.jsonl", 3), "--output", output) == 0
    first, second, _ = map(json.loads, output.read_text().splitlines())
    assert first == {
        "id": "0",
        "seeker_post": "I failed.",
        "response_post": "I'm sorry.",
        "emotional_reactions": 2,
        "interpretations": 2,
        "explorations": 2,
        "probabilities": {key: [0.0, 0.0, 1.0] for key in MECHANISMS},
        "empathy": 6,
        "rationales": {key: ["sorry"] for key in MECHANISMS},
    }
    assert second["empathy"] == 0
    assert [exchange.empathy for exchange in load_exchanges(output)] == [6, 0, 0]
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []


def test_a_line_of_an_ensemble_says_how_far_its_members_are_apart() -> None:
    class Silent(Words):
        """Finds nothing anywhere."""

        def assess(self, seeker_posts: Any, response_posts: Any, **options: Any) -> Any:
            return super().assess(seeker_posts, ["" for _ in response_posts], **options)

    replies = [Exchange("I failed.", "I'm sorry."), Exchange("I failed.", "Study harder.")]
    one, other = score.scored_rows(replies, EnsembleIdentifier([Words(), Silent()]))
    # The members expect the levels 2 and 0, then 0 and 0.
    for line, value in ((one, 1.0), (other, 0.0)):
        for mechanism in MECHANISMS:
            assert line["disagreement"][mechanism] == {"mean": value, "standard_deviation": value}


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "in.jsonl", 5)
    run("score", "--input", source, "--output", tmp_path / "a.jsonl")
    run("score", "--input", source, "--output", tmp_path / "a.parquet")
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == lines


def test_mistakes_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_rows(tmp_path / "in.jsonl", 2)
    assert run("score", "--input", source, "--output", tmp_path / "a.txt") == 1
    assert ".parquet" in capsys.readouterr().err
    (tmp_path / "a.jsonl").write_text("")
    assert run("score", "--input", source, "--output", tmp_path / "a.jsonl") == 1
    assert "--overwrite" in capsys.readouterr().err


def launch(arguments: list[str], before: str = "", **variables: str) -> int:
    """The command in a process of its own, with the fake identifier."""
    code = START.format(root=str(ROOT), before=before)
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], check=False, env=environment, capture_output=True
    ).returncode


DIE = """
import os, signal
calls, assess = [], Words.assess
def dying(self, *posts, **options):
    calls.append(1)
    if len(calls) == 3: os.kill(os.getpid(), signal.SIGKILL)
    return assess(self, *posts, **options)
Words.assess = dying
"""


def test_killed_and_restarted_it_loses_and_repeats_nothing(tmp_path: Path) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", 1000), tmp_path / "out.jsonl"
    arguments = ["score", "--input", str(source), "--output", str(output)]
    assert launch(arguments, DIE) == -9
    assert not output.exists()
    assert launch(arguments) == 0
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == [str(i) for i in range(1000)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_two_processes_share_the_rows_in_order(tmp_path: Path) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", 700), tmp_path / "out.jsonl"
    arguments = ["score", "--input", str(source), "--output", str(output)]
    script = tmp_path / "run.py"
    script.write_text(START.format(root=str(ROOT), before=""))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", str(script)]
    result = subprocess.run(
        [*command, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == [str(i) for i in range(700)]


def test_chunks_are_dealt_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "CHUNK", 2)
    rows = list(load_exchanges("sample:test", limit=7))
    first = [list(chunk) for chunk in score.chunks_of(iter(rows), 0, 2)]
    second = [list(chunk) for chunk in score.chunks_of(iter(rows), 1, 2)]
    assert first == [rows[0:2], rows[4:6]]
    assert second == [rows[2:4], rows[6:7]]


def test_feedback_in_words_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    posts = ("--seeker", "I failed.", "--response", "I'm sorry.")
    assert run("feedback", *posts) == 0
    shown = capsys.readouterr().out
    assert "empathy 6 of 6" in shown
    assert "level 2 of 2" in shown
    assert run("feedback", *posts, "--json") == 0
    feedback = json.loads(capsys.readouterr().out)
    assert feedback["empathy"] == 6
    assert feedback["explorations"]["rationales"] == ["sorry"]
    assert run("feedback", "--seeker", "a", "--response", " ") == 1


def test_changed_input_is_refused_until_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`history` stands in the output, and other columns too: they are part of the input."""
    source, output = write_rows(tmp_path / "in.jsonl", 600), tmp_path / "out.jsonl"
    arguments = ["score", "--input", str(source), "--output", str(output)]
    assert launch(arguments, DIE.replace("== 3", "== 2")) == -9
    source.write_text(source.read_text().replace('{"id": 0,', '{"id": 0, "history": ["Hi."],'))
    assert run(*arguments) == 1
    assert "is from an unfinished run with another input" in capsys.readouterr().err
    assert run(*arguments, "--overwrite") == 0
    assert json.loads(output.read_text().splitlines()[0])["history"] == ["Hi."]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


@pytest.mark.parametrize("damage", [b"", b'{"id": "0"}\n', b"\x00\xff\n" * 3, b"[]\n" * 3])
def test_a_damaged_part_is_not_joined(tmp_path: Path, damage: bytes) -> None:
    part = tmp_path / "out.jsonl.part0of1-abc"
    part.write_bytes(damage)
    for output in (tmp_path / "out.jsonl", tmp_path / "out.parquet"):
        with pytest.raises(UserError, match="damaged before they could be joined"):
            score.join_parts([part], output, 3)
        assert not output.exists()


def test_a_csv_of_scores_is_read_again(tmp_path: Path) -> None:
    """Lists and mappings are JSON in its cells, and no text is a formula."""
    from recipes.commands.score import write_csv
    from rewriting.data import load_exchanges

    row = {
        "id": "1",
        "seeker_post": "I failed; again,\nyes.",
        "response_post": "=1+1",
        "emotional_reactions": 1,
        "rationales": {"emotional_reactions": ["1+1"]},
        "empathy": 1,
    }
    part = tmp_path / "part"
    part.write_text(json.dumps(row) + "\n" + json.dumps(row | {"forum": "exams"}) + "\n")
    write_csv([part], tmp_path / "scores.csv", 2)
    first, second = load_exchanges(tmp_path / "scores.csv")
    assert first.seeker_post == row["seeker_post"]
    assert first.response_post == "'=1+1"
    assert first.labels["emotional_reactions"].rationales == ("1+1",)
    assert (first.extra["forum"], second.extra["forum"]) == ("", "exams")
