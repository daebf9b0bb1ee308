"""The commands on the pages: each names a recipe, a table, a command and options that are there."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.docs.hooks.test_links import ROOT
from tests.docs.test_pages import PAGES, name_of

PROGRAMS = {"train.py", "evaluate.py", "rewriting"}
ENDS_A_COMMAND = {"|", "&&", ";", "#", "…"}
CARDS = [*ROOT.glob("*/shipped/*/README.md"), *ROOT.glob("rewriting/safety/shipped/*/README.md")]
BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.M | re.S)
INLINE = re.compile(r"`([^`]*)`")


@cache
def recipes(program: str) -> dict[str, set[str]]:
    """Every recipe of train.py, or table of evaluate.py, with its fields."""
    from recipes.entry import EVALUATION, TRAINING

    modules = TRAINING if program == "train.py" else EVALUATION
    return {
        name: {one.name for one in fields(import_module(place).Config)} | {"config"}
        for name, place in modules.items()
    }


@cache
def commands() -> dict[str, tuple[set[str], set[str]]]:
    """Every command of `rewriting`, such as "ab create", with its options and those it needs."""
    import typer

    from recipes.cli import app

    def below(command: Any, name: str) -> Iterator[tuple[str, tuple[set[str], set[str]]]]:
        if inner := getattr(command, "commands", {}):
            for word, sub in inner.items():
                yield from below(sub, f"{name} {word}".strip())
        else:
            options = [one for one in command.params if one.param_type_name == "option"]
            known = {o[2:] for one in options for o in (*one.opts, *one.secondary_opts)}
            yield name, (known, {one.opts[0][2:] for one in options if one.required})

    return dict(below(typer.main.get_command(app), ""))


def wrong_with(words: list[str], inline: bool = False) -> list[str]:
    """What a command names that is not there, or lacks. Words: the program and what follows."""
    program, *rest = words
    program = Path(program).name
    if program == "rewriting" and rest[:1] in (["train"], ["evaluate"]):
        program, rest = f"{rest[0]}.py", rest[1:]
    options = {re.sub("=.*", "", w)[2:] for w in rest if re.match(r"--[a-z]", w)} - {"help"}
    if program != "rewriting":
        known = recipes(program)
        if not rest or rest[0].startswith("-") or not rest[0].islower():
            rest = ["partner"] if program == "train.py" else ["rewrites"]
        if rest[0] not in known:
            return [rest[0]]
        return sorted(one for one in options if one.replace("-", "_") not in known[rest[0]])
    names = [name for name in (" ".join(rest[:2]), " ".join(rest[:1])) if name in commands()]
    if not names:
        starts = not rest or not rest[0].islower() or any(c.startswith(rest[0]) for c in commands())
        return [] if starts or rest[0].startswith("-") else [rest[0]]
    known, needed = commands()[names[0]]
    wrong = sorted(options - known)
    # In running text a command is named with the options that matter there.
    return wrong if inline else wrong + [f"no {one}" for one in sorted(needed - options)]


def commands_on(page: Path) -> Iterator[tuple[int, list[str], bool]]:
    """The commands of a page, each with its line and whether it stands in running text."""
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        if block[1] not in ("", "bash", "sh", "console"):
            continue
        start = text.count("\n", 0, block.start(2)) + 1
        joined = block[2].replace("\\\n", "  ")
        for number, line in enumerate(joined.splitlines()):
            for words in command_in(line.lstrip("$ ")):
                yield start + number, words, False
    for piece in INLINE.finditer(BLOCK.sub(lambda b: "\n" * b[0].count("\n"), text)):
        for words in command_in(piece[1]):
            if len(words) > 1:
                yield text.count("\n", 0, piece.start()) + 1, words, True


def command_in(line: str) -> Iterator[list[str]]:
    """The words of a line from the program on, if it has one."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # an output, or a line of another language
        return
    starts = [n for n, word in enumerate(words) if Path(word).name in PROGRAMS]
    if not starts or "from" in words[: starts[0]] or "import" in words[: starts[0]]:
        return
    end = next((n for n, word in enumerate(words) if word in ENDS_A_COMMAND), len(words))
    yield words[starts[-1 if "-m" in words[: starts[-1]] else 0] : end]


@pytest.mark.parametrize("page", [*PAGES, *CARDS], ids=name_of)
def test_commands_name_what_is_there(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        pytest.skip("it may name what was")
    found = [(number, wrong_with(words, inline)) for number, words, inline in commands_on(page)]
    wrong = [f"line {number}: {', '.join(bad)}" for number, bad in found if bad]
    assert wrong == []


def test_the_commands_of_a_page_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Say `rewriting rewrite --sed 1`.\n```\n"
        "A=1 python train.py partner --step 4 \\\n  --steps 5   # a comment\n"
        "accelerate launch -m rewriting train bank --choices 4\npython evaluate.py rewrite\n"
        "rewriting score --input a.csv\n```\n"
    )
    found = {number: wrong_with(words, inline) for number, words, inline in commands_on(page)}
    assert found == {1: ["sed"], 3: ["step"], 4: [], 5: ["rewrite"], 6: ["no output"]}


@pytest.mark.parametrize("page", [*PAGES, *CARDS], ids=name_of)
def test_files_of_the_repository_that_a_page_names_are_there(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    folders = "rewriting|rewards|policies|recipes|configs|tests|benchmarks|notebooks"
    named = re.findall(rf"`((?:{folders})/[\w./-]*(?:/|\.(?:py|toml|yaml|txt|jsonl|md)))`", text)
    assert [one for one in named if not (ROOT / one).exists()] == []


@pytest.mark.parametrize("page", [*PAGES, *CARDS], ids=name_of)
def test_policies_that_commands_name_are_there(page: Path) -> None:
    """A name without a folder or an ending is one of ours, as in --systems original,best=bank@4."""
    from policies.named import POLICIES

    systems = [s for _, words, _ in commands_on(page) for s in values_of(words, "--systems")]
    named = [system.split("=")[-1].split("@")[0] for system in systems if len(system) > 1]
    named += [p for _, words, _ in commands_on(page) for p in values_of(words, "--policy")]
    ours = {name for name in named if name and not set(name) & set("./:") and name.islower()}
    assert ours - set(POLICIES) - {"original", "human"} == set()


def values_of(words: list[str], option: str) -> list[str]:
    """What is given to an option, cut at commas."""
    given = [after for before, after in pairwise(words) if before == option]
    return [value for one in given for value in one.split(",")]
