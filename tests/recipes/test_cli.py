"""The commands as a user types them: results on disk, one line for a mistake, exit codes."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from recipes import cli
from recipes.cli import main
from recipes.entry import EVALUATION, TRAINING
from rewriting import __version__
from rewriting.data import load_exchanges

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        code = stop.value.code
        assert isinstance(code, int)
        return code, captured.out, captured.err

    return command


def one_line_error(result: tuple[int, str, str]) -> str:
    """The message of a command that failed as it should: code 1, one line, no traceback."""
    code, _, err = result
    assert code == 1
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    return err


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["rewrite"],
        ["score"],
        ["feedback"],
        ["data"],
        ["data", "check"],
        ["models"],
        ["models", "fetch"],
        ["configs"],
        ["push"],
    ],
)
def test_every_command_has_help(run: Run, command: list[str]) -> None:
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert "Usage" in out


def test_python_m_is_the_same_command() -> None:
    command = [sys.executable, "-m", "rewriting", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "rewriting [OPTIONS] COMMAND" in result.stdout


def test_the_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version") == (0, f"rewriting {__version__}\n", "")


def test_train_and_evaluate_are_those_of_the_scripts(run: Run) -> None:
    code, out, _ = run("train", "--help")
    assert code == 0
    assert out.startswith("usage: rewriting train RECIPE")
    assert all(f"\n  {name} " in out for name in TRAINING)
    code, out, _ = run("evaluate", "--help")
    assert code == 0
    assert all(f"\n  {name} " in out for name in EVALUATION)
    code, out, _ = run("evaluate", "probe", "--help")
    assert code == 0
    assert out.startswith("usage: rewriting evaluate probe")


def test_the_words_of_a_recipe_reach_it_as_they_were(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[str]] = []
    monkeypatch.setattr(cli, "run_training", lambda words, program: found.append(words))
    words = ["partner", "--config", "partner", "--steps=2", "-x", "--output", "runs/a b", "--help"]
    assert run("train", *words)[0] == 0
    assert run("train")[0] == 0
    assert found == [words, []]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "partnr"], "no recipe 'partnr'"),
        (["train", "partner", "--config", "partnr"], "Did you mean partner?"),
        (["train", "partner", "--config=partnr"], "Did you mean partner?"),
        (["train", "partner", "--config"], "argument --config: expected one argument"),
        (["evaluate", "probes"], "no recipe 'probes'"),
        (["configs", "launch/gpu"], "Names: emprl, "),
    ],
)
def test_mistakes_of_recipes_are_one_line(run: Run, arguments: list[str], message: str) -> None:
    assert message in one_line_error(run(*arguments))


def test_configs_are_listed_and_found(run: Run) -> None:
    _, listed, _ = run("configs")
    paths = dict(line.split("\t") for line in listed.splitlines())
    assert {"partner", "launch/gpus"} <= paths.keys()
    assert run("configs", "launch/gpus")[1] == f"{paths['launch/gpus']}\n"
    assert Path(paths["launch/gpus"]).is_file()


def test_data_check_counts_the_sample(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("data", "check", "sample", "--json", tmp_path / "counts.json")
    assert code == 0
    assert "624" in out
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert (counts["rows"], counts["seekers"]) == (624, 132)
    again = run("data", "check", "sample", "--json", tmp_path / "counts.json")
    assert "--overwrite" in one_line_error(again)


def test_data_check_names_a_bad_row_or_counts_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"seeker_post": "a", "response_post": "b"}\nbroken\n')
    assert "x.jsonl, line 2: not valid JSON" in one_line_error(run("data", "check", path))
    code, out, _ = run("data", "check", path, "--skip-bad-rows")
    assert code == 0
    assert "bad row: " in out
    assert "line 2" in out


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"seeker_post,reply\na,b\n", "no column 'response_post'"),
        ("x.jsonl", b'{"seeker_post":"a","response_post":"b","explorations":7}', "a level is 0, 1"),
        ("x.csv", b"seeker_post,response_post\na,caf\xe9\n", "line 2: not UTF-8"),
    ],
)
def test_data_check_explains_bad_files(
    run: Run, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert message in one_line_error(run("data", "check", tmp_path / name))


def test_a_mistake_with_overwrite_costs_nothing(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "good.jsonl"
    output.write_text("precious\n")
    arguments = ("rewrite", "--output", output, "--policy", "generic", "--overwrite")
    one_line_error(run(*arguments, "--input", tmp_path / "typo.csv"))
    assert output.read_text() == "precious\n"


def test_rewrite_writes_the_lines_of_the_contract(run: Run, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    arguments = ("rewrite", "--input", "sample:test", "--policy", "generic", "--output", output)
    code, out, _ = run(*arguments)
    assert code == 0
    assert str(output) in out
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    exchanges = list(load_exchanges("sample:test"))
    assert [row["id"] for row in rows] == [exchange.id for exchange in exchanges]
    assert rows[0] == {
        "id": exchanges[0].id,
        "seeker_post": exchanges[0].seeker_post,
        "response_post": exchanges[0].response_post,
        "rewritten_response": "This must have been really hard for you. "
        + exchanges[0].response_post,
        "edits": [
            {
                "operation": "insert",
                "position": 0,
                "sentence": "This must have been really hard for you.",
            }
        ],
        "rewards": {},
        "safety": {"verdict": "clear", "reasons": []},
        "policy": "generic",
        "seed": 0,
        "ai_assisted": True,
    }
    assert "--overwrite" in one_line_error(run(*arguments))
    assert run(*arguments, "--overwrite")[0] == 0


def test_rewrite_sets_bad_rows_aside(run: Run, tmp_path: Path) -> None:
    source, output = tmp_path / "x.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"seeker_post": "a", "response_post": "b"}\n{"seeker_post": "c"}\n')
    arguments = ("rewrite", "--input", source, "--policy", "generic", "--output", output)
    assert "line 2: no response_post" in one_line_error(run(*arguments))
    assert not output.exists()
    code, out, _ = run(*arguments, "--skip-bad-rows")
    assert code == 0
    assert "1 bad row set aside" in out
    assert len(output.read_text().splitlines()) == 1
    (bad,) = map(json.loads, (tmp_path / "out.bad.jsonl").read_text().splitlines())
    assert (bad["line"], bad["content"]) == (2, {"seeker_post": "c"})


def test_rewrite_of_one_text(run: Run) -> None:
    arguments = ("rewrite", "--seeker", "I failed.", "--response", "Try.", "--policy", "generic")
    _, out, _ = run(*arguments, "--json")
    assert json.loads(out)["rewritten_response"] == "This must have been really hard for you. Try."
    _, out, _ = run(*arguments)
    assert "after" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "sample"], "give --input and --output"),
        (["--seeker", "a"], "each need a text"),
        (["--seeker", "a", "--response", " "], "each need a text"),
        (["--seeker", "a", "--response", "b", "--input", "sample"], "give either"),
        (["--input", "sample", "--output", "x.csv"], ".jsonl"),
        (["--input", "gone.csv", "--output", "x.jsonl"], "no such file"),
        (["--input", "sample", "--output", "x.jsonl", "--policy", "gone"], "no policy 'gone'"),
    ],
)
def test_rewrite_explains_mistakes(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in one_line_error(run("rewrite", *arguments))
    assert not (tmp_path / "x.jsonl").exists()


@pytest.mark.integration
def test_a_killed_rewrite_goes_on_where_it_was(tmp_path: Path) -> None:
    """kill -9 after the first chunk; the second run gives the file of an uninterrupted one."""
    source = tmp_path / "in.jsonl"
    row = {"seeker_post": "I failed.", "response_post": "Try again."}
    source.write_text("".join(json.dumps(row | {"id": i}) + "\n" for i in range(400)))

    def command(output: Path) -> list[str]:
        options = ["--input", str(source), "--policy", "generic", "--output", str(output)]
        return [sys.executable, "-m", "rewriting", "rewrite", *options]

    killed = (
        "import os, signal\n"
        "from policies.baselines.generic import GenericPolicy\n"
        "rewrite, calls = GenericPolicy.rewrite, []\n"
        "def dying(self, exchanges, *, seed):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return rewrite(self, exchanges, seed=seed)\n"
        "GenericPolicy.rewrite = dying\n"
        "import sys; from recipes.cli import main; main(sys.argv[1:])\n"
    )
    output, whole = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    first = subprocess.run([sys.executable, "-c", killed, *command(output)[3:]], check=False)
    assert first.returncode == -9
    assert not output.exists()
    assert len((tmp_path / "out.jsonl.partial").read_text().splitlines()) == 128
    second = subprocess.run(command(output), capture_output=True, text=True, check=True)
    assert "going on after 128 of 400" in second.stderr
    subprocess.run(command(whole), capture_output=True, check=True)
    assert output.read_bytes() == whole.read_bytes()
