"""The four steps of CONTRIBUTING.md, done in a copy of the code as they stand on the page."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
STEP = re.compile(r"^```(?P<kind>python|diff) (?P<file>\S+)\n(?P<text>.*?)^```$", re.M | re.S)
GUIDES = re.findall(r"^## (Add a .+ in four steps)$", PAGE, re.M)
COPIED = ("rewriting", "rewards", "policies", "recipes", "tests", "docs")


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The repository in links to its files: a step replaces a link by a file of its own."""
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name, copy_function=os.symlink)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def do(step: re.Match[str], root: Path) -> None:
    """Write the file of a step, or add its lines beside those that are there."""
    path = root / step["file"]
    text = step["text"]
    if step["kind"] == "diff":
        lines = text.splitlines(keepends=True)
        there = "".join(line[1:] for line in lines if line[0] == " ")
        before = path.read_text(encoding="utf-8")
        assert before.count(there) == 1, f"{step['file']} has to hold, once:\n{there}"
        text = before.replace(there, "".join(line[1:] for line in lines))
        path.unlink()
    else:
        assert not path.exists()
    path.write_text(text, encoding="utf-8")


def test_there_are_four_guides_of_four_steps() -> None:
    assert len(GUIDES) == 4
    for title in GUIDES:
        numbers = re.findall(r"^(\d)\. ", section(title), re.M)
        assert numbers == ["1", "2", "3", "4"], title


@pytest.mark.parametrize("title", GUIDES)
def test_the_steps_work_as_they_stand(title: str, copy: Path) -> None:
    steps = list(STEP.finditer(section(title)))
    tests = [step["file"] for step in steps if step["file"].startswith("tests/")]
    for step in steps:
        do(step, copy)
    assert tests
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(copy)}
    run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_steps_of_a_measure_and_a_reward_keep_the_docs_whole(copy: Path) -> None:
    """Tests compare the tables of the docs with the code, so the third step is no decoration."""
    for title in GUIDES:
        for step in STEP.finditer(section(title)):
            do(step, copy)
    code = (
        "from rewards.named import BUILT_INS\n"
        "from rewriting.measures.measure import measures_table\n"
        "from rewriting.measures.rewrites import MEASURES, ON_REQUEST\n"
        "page = open('docs/evaluation.md', encoding='utf-8').read()\n"
        "assert '\\n'.join(measures_table(MEASURES | ON_REQUEST)) in page\n"
        "page = open('docs/custom-rewards.md', encoding='utf-8').read()\n"
        "assert [n for n in BUILT_INS if f'| `{n}` |' not in page] == []\n"
        "assert list(BUILT_INS)[0] == 'politeness'\n"
    )
    environment = os.environ | {"PYTHONPATH": str(copy)}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
