"""The wheel is complete: installed alone, outside the checkout, it does what the checkout does."""

import json
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from rewriting import __version__
from rewriting.distribution import PACKAGES
from tests.installed import ROOT, Environment, build_wheel

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("wheel")
    return Environment(folder / "environment", build_wheel(folder))


@pytest.fixture
def run(environment: Environment, tmp_path: Path) -> Run:
    """Runs a program of the environment in an empty folder; it has to succeed."""

    def succeed(*command: str) -> subprocess.CompletedProcess[str]:
        result = environment.run(*command, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        return result

    return succeed


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert newest is not None
    assert {project["version"], citation["version"], newest[1]} == {__version__}


def test_the_wheel_holds_every_file_of_the_packages(environment: Environment) -> None:
    """Weights, samples, configs, pages, rules: whatever git knows, the wheel has, byte by byte."""
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True
    )
    files = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    kinds = {Path(name).suffix for name in files}
    assert kinds >= {".safetensors", ".jsonl", ".yaml", ".html", ".js", ".css", ".toml", ".typed"}
    installed = environment.libraries
    missing = [name for name in files if not (installed / name).is_file()]
    assert missing == []
    differing = [n for n in files if (installed / n).read_bytes() != (ROOT / n).read_bytes()]
    assert differing == []


def test_the_command_answers_outside_the_checkout(run: Run, environment: Environment) -> None:
    assert run("rewriting", "--version").stdout == f"rewriting {__version__}\n"
    assert run("python", "-m", "rewriting", "--version").stdout == f"rewriting {__version__}\n"
    assert "train" in run("rewriting", "--help").stdout
    code = "import rewriting, recipes; print(rewriting.__file__, recipes.__file__)"
    for place in run("python", "-c", code).stdout.split():
        assert Path(place).is_relative_to(environment.libraries)


def test_help_of_recipes_and_tables(run: Run) -> None:
    assert "\n  partner " in run("rewriting", "train", "--help").stdout
    assert "\n  rewrites " in run("rewriting", "evaluate", "--help").stdout
    assert "--learning_rate" in run("rewriting", "train", "partner", "--help").stdout


def test_configs_are_found_by_name(run: Run, environment: Environment) -> None:
    (path,) = run("rewriting", "configs", "launch/gpus").stdout.splitlines()
    assert Path(path).is_relative_to(environment.libraries)
    code = (
        "import sys; from recipes.entry import parse; from recipes.train.partner import recipe; "
        "print(parse(recipe, 'train', ['--config', 'partner']).data)"
    )
    config = yaml.safe_load((ROOT / "configs/partner.yaml").read_text("utf-8"))
    expected = config.get("data", "sample")
    assert run("python", "-c", code).stdout == f"{expected}\n"


def test_another_distribution_over_a_package_is_said_in_one_line(
    environment: Environment, tmp_path: Path
) -> None:
    init = environment.libraries / "policies/__init__.py"
    ours = init.read_bytes()
    init.write_text("'''Insurance policies.'''\n")
    try:
        result = environment.run("rewriting", "--version", cwd=tmp_path)
    finally:
        init.write_bytes(ours)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: the package 'policies' is not that of empathic-rewriting")


@pytest.mark.integration
def test_the_wheel_rewrites_scores_trains_measures_and_makes_a_study(
    run: Run, tmp_path: Path
) -> None:
    texts = ("--seeker", "I failed the exam again.", "--response", "Start earlier next time.")
    found = run("rewriting", "rewrite", *texts, "--policy", "generic", "--json").stdout
    assert json.loads(found)["rewritten_response"].endswith("Start earlier next time.")
    assert "Explorations" in run("rewriting", "feedback", *texts).stdout
    (tmp_path / "two.csv").write_text(
        "id,seeker_post,response_post\n1,I failed.,Try again.\n2,My dog died.,So sorry. When?\n"
    )
    run("rewriting", "score", "--input", "two.csv", "--output", "scores.jsonl")
    assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == 2
    launch = "python -m accelerate.commands.launch --cpu --num_processes 1 --num_machines 1 "
    launch += "--mixed_precision no --dynamo_backend no -m rewriting train partner --output run "
    launch += "--steps 2 --batch_size 1 --num_samples 2 --max_new_tokens 6 --dev_rows 0"
    run(*launch.split(), "--rewards", "{edit_size: 1.0, repetition: 1.0}")
    assert (tmp_path / "run/policy/policy.json").is_file()
    table = "rewriting evaluate rewrites --systems original,trained=run/policy --data sample:test"
    run(*table.split(), "--limit", "2", "--json", "table.json")
    figures = json.loads((tmp_path / "table.json").read_text())
    assert {"original", "trained"} <= figures.keys()
    run(
        "rewriting",
        "rewrite",
        "--input",
        "two.csv",
        "--output",
        "ours.jsonl",
        "--policy",
        "generic",
    )
    ours = [json.loads(line) for line in (tmp_path / "ours.jsonl").read_text().splitlines()]
    theirs = [json.dumps(row | {"rewritten_response": "Oh no. I hear you."}) for row in ours]
    (tmp_path / "theirs.jsonl").write_text("\n".join(theirs))
    create = "rewriting ab create --system ours=ours.jsonl --system theirs=theirs.jsonl"
    run(*create.split(), "--raters", "3", "--output", "study")
    assert run("rewriting", "ab", "links", "study").stdout.count("http://127.0.0.1:8000/r/") == 3
