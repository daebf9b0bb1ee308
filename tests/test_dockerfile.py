"""The Dockerfile, without docker: what it copies is there, what it runs is a command of ours."""

import json
import re
import shlex
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import typer.main

from recipes.cli import app
from rewriting.distribution import PACKAGES
from tests.installed import BUILT_FROM

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", "")
STEPS = re.findall(r"^([A-Z]+) (.+)$", TEXT, re.M)


def steps(kind: str) -> list[str]:
    return [rest for name, rest in STEPS if name == kind]


def parsed(words: list[str]) -> dict[str, Any]:
    """The options of a command of ours as it would read them; a wrong one raises."""
    program, *rest = words
    assert program == "rewriting"
    command: Any = typer.main.get_command(app)
    context = command.make_context(program, list(rest), resilient_parsing=True)
    while rest and hasattr(command, "get_command"):
        name, *rest = rest
        command = command.get_command(context, name)
        assert command is not None, f"there is no command {name}"
    return dict(command.make_context(command.name, rest).params)


def test_what_is_copied_is_there_and_is_all_that_the_wheel_is_built_from() -> None:
    copied = {word for line in steps("COPY") for word in line.split()[:-1]}
    assert copied == {"constraints.txt", *BUILT_FROM, *PACKAGES}
    assert all((ROOT / name).exists() for name in copied)
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == copied
    for secret in (".git/config", ".venv/bin/python", "runs/policy.json", "rewriting/__pycache__"):
        ignored = False
        for rule in rules:
            if fnmatch(secret, rule.lstrip("!")) or secret.startswith(f"{rule.lstrip('!')}/"):
                ignored = not rule.startswith("!")
        assert ignored, secret


def test_the_default_command_serves_everybody_who_has_the_token() -> None:
    (command,) = steps("CMD")
    options = parsed(json.loads(command))
    assert (options["host"], options["require_token"]) == ("0.0.0.0", True)
    assert steps("EXPOSE") == [str(options["port"])]


def test_models_are_fetched_and_the_server_runs_as_nobody_special() -> None:
    users = [number for number, (name, _) in enumerate(STEPS) if name == "USER"]
    (fetching,) = (n for n, step in enumerate(STEPS) if step == ("RUN", "rewriting models fetch"))
    assert parsed(shlex.split(STEPS[fetching][1])) == {"names": (), "verify": False}
    assert STEPS[users[-1]][1] not in ("root", "0")
    assert users[-1] < fetching


@pytest.mark.parametrize("words", ["rewriting serves", "rewriting serve --hosts x"])
def test_a_wrong_command_would_be_found(words: str) -> None:
    with pytest.raises(Exception, match=r"no command|No such option"):
        parsed(words.split())
