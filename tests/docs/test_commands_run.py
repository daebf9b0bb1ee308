"""Every command on a page, and every example of a help text, runs as it is printed.

It runs in a folder with the files that pages speak of. Models, the hub and servers have stand-ins,
and of a recipe or table everything runs that comes before its models are loaded; what it does with
them has tests of its own. Commands of other programs stand in ELSEWHERE, with the reason.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from recipes.entry import EVALUATION, TRAINING
from recipes.shared.ending import NEXT, next_steps
from tests.docs import reader
from tests.docs.hooks.test_links import ROOT
from tests.docs.test_commands import BLOCK, PROGRAMS
from tests.docs.test_pages import PAGES, name_of
from tests.recipes.commands_of import with_commands

ELSEWHERE = {
    "make": "tests/test_docs.py and continuous integration run its recipes one by one",
    "pip": "installs from an index; tests/test_wheel.py builds the wheel and installs it",
    "docker": "no docker is at hand; tests/test_dockerfile.py reads the Dockerfile",
    "curl": "tests/recipes/commands/test_serve.py sends its text to a server",
    "hf": "logs in to the hub",
    "rewriting ab import": "tests/rewriting/ab/server/test_sheet.py fills sheets in and reads them",
    "python train.py sense --output runs/belong": "goes on from a shipped model of the checkout",
    "python train.py bank --output runs/bank_start": "needs what the command before it trains",
    "python train.py bank --output runs/bank --data": "the same",
    "python evaluate.py rewrites --data data/epitome --split test --max_empathy 1 --limit 64": (
        "compares with a policy that the page of bank trains"
    ),
    ".venv/bin/pre-commit": "installs hooks into the checkout",
}
"""The beginning of a command → why it does not run here."""

LAUNCHERS = (
    r"accelerate launch( --config_file (?P<file>\S+))?( -m)?",
    r"torchrun --nproc_per_node \d+( -m)?",
    r"python( -m)?",
)
PLAIN = re.compile(rf"^(?:[A-Z_]+=\S+ )*(?:(?:{'|'.join(LAUNCHERS)}) )?(?P<command>.*)$")
SCRIPT = re.compile(
    r"^(?:[A-Z_]+=\S+ )*python (-m )?(?P<script>benchmarks/\S+|tests\.\S+)(?P<rest>.*)"
)


def lines_of(page: Path) -> Iterator[tuple[int, str]]:
    """The commands in the blocks of a page, each with the number of its line."""
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(2)) + 1
        if block[1] in ("", "bash", "sh", "console"):
            for number, line in enumerate(block[2].replace("\\\n", "  ").splitlines()):
                if is_command(line.strip().removeprefix("$ ")):
                    yield start + number, line.strip().removeprefix("$ ")


def is_command(line: str) -> bool:
    if "◄" in line:  # an arrow of a drawing
        return False
    first = re.sub(r"^(?:[A-Z_]+=\S+ )*", "", line).split(" ")[0]
    programs = {
        *PROGRAMS,
        "python",
        "accelerate",
        "torchrun",
        *(one.split()[0] for one in ELSEWHERE),
    }
    return first in programs


def words_of(line: str) -> list[str]:
    """The program and its words; launchers, comments and what the shell would fill in are gone."""
    line = re.sub(r'"\$\(rewriting configs (\S+)\)"', r"configs/\1.yaml", line)
    match = PLAIN.match(line)
    assert match is not None
    if match["file"]:
        assert (ROOT / match["file"]).is_file(), line
    return shlex.split(match["command"], comments=True)


def runs_elsewhere(line: str) -> bool:
    """Whether a command is for another test; a script has to be there, and to know its options."""
    if (script := SCRIPT.match(line)) is not None:
        path = script["script"].replace(".", "/") if script[1] else script["script"]
        places = [ROOT / path, ROOT / f"{path}.py", ROOT / path / "__main__.py"]
        file = next(place for place in places if place.is_file())
        options = re.findall(r"--[\w-]+", script["rest"])
        assert [one for one in options if f'"{one}"' not in file.read_text("utf-8")] == [], line
        return True
    plain = re.sub(r"^(?:[A-Z_]+=\S+ )*", "", line)
    return any(plain == one or plain.startswith(f"{one} ") for one in ELSEWHERE)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reader") / "files"
    folder.mkdir()
    reader.write_files(folder)
    return folder


@pytest.fixture
def in_copies(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of copies. Weights are the same files: no command writes into them."""
    reader.stand_in(monkeypatch)
    for name in ("RANK", "WORLD_SIZE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REWRITING_TOKEN", "a-secret-of-16-or-more")
    return tmp_path


def failure(line: str, files: Path, copies: Path) -> str:
    """What a command says that fails in a fresh copy of the files; empty where it works."""
    copy = copies / "copy"
    shutil.copytree(files, copy, symlinks=True, copy_function=linked)
    words, before = words_of(line), Path.cwd()
    for option, value in pairwise(words):
        if option in ("--output", "--json", "--html") and (copy / value).is_file():
            (copy / value).unlink()
    if words[:3] == ["rewriting", "ab", "create"]:  # what the others on its page use
        shutil.rmtree(copy / "study")
    os.chdir(copy)
    try:
        code = reader.run(words)
    finally:
        os.chdir(before)
        shutil.rmtree(copy)
    return "" if code == 0 else f"{line}: exit code {code}"


def linked(source: str, target: str) -> None:
    if source.endswith(".safetensors"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_commands_of_a_page_run(page: Path, files: Path, in_copies: Path) -> None:
    failures = [
        f"line {number}: {problem}"
        for number, line in lines_of(page)
        if not runs_elsewhere(line) and (problem := failure(line, files, in_copies))
    ]
    assert failures == []


def test_every_command_of_rewriting_has_an_example(files: Path, in_copies: Path) -> None:
    failures = []
    for words, command in with_commands():
        title, *lines = (command.epilog or "").split("\n\n")
        name = " ".join(["rewriting", *words])
        assert title in ("Example:", "Examples:"), name
        assert any(name in line for line in lines), name
        runs = [line for line in lines if not runs_elsewhere(line)]
        failures += filter(None, (failure(line, files, in_copies) for line in runs))
    assert failures == []


def examples_of(out: str) -> list[str]:
    """The commands in the help of a recipe, a line each."""
    joined = out.split("options:")[0].replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if is_command(line.strip())]


@pytest.mark.parametrize("program", ["train.py", "rewriting train"])
def test_the_help_of_every_recipe_has_examples(
    program: str, files: Path, in_copies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    help_has_examples(program, list(TRAINING), files, in_copies, capsys)


@pytest.mark.parametrize("program", ["evaluate.py", "rewriting evaluate"])
def test_the_help_of_every_table_has_examples(
    program: str, files: Path, in_copies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    help_has_examples(program, list(EVALUATION), files, in_copies, capsys)


def help_has_examples(
    program: str,
    names: list[str],
    files: Path,
    copies: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failures = []
    for name in names:
        capsys.readouterr()
        assert reader.run([*program.split(), name, "--help"]) == 0
        lines = examples_of(capsys.readouterr().out)
        assert any(name in line for line in lines), name
        if " " in program:  # of an installed wheel, where the scripts are not
            assert [line for line in lines if re.search(r"(train|evaluate)\.py", line)] == []
            lines = [line for line in lines if "--config" in line]  # the others ran as scripts
        failures += filter(None, (failure(line, files, copies) for line in lines))
    assert failures == []


@pytest.mark.parametrize("recipe", NEXT)
def test_what_a_run_says_to_type_next_runs(recipe: str, files: Path, in_copies: Path) -> None:
    folder = Path("runs") / recipe
    lines = [line for line in next_steps(recipe, folder) if is_command(line)]
    assert list(filter(None, (failure(line, files, in_copies) for line in lines))) == []


def test_a_command_that_fails_is_told(files: Path, in_copies: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```\nmake test\nrewriting data check replies.csv --limit 3  # some\n"
        "$ A=1 accelerate launch train.py partner \\\n  --step 3\nR = a + b\n```\n"
    )
    found = {number: line for number, line in lines_of(page) if not runs_elsewhere(line)}
    assert list(found) == [3, 4]
    assert failure(found[4], files, in_copies).endswith("exit code 1")
    assert failure("rewriting data check gone.csv", files, in_copies)
    assert failure("rewriting data check replies.csv", files, in_copies) == ""
