"""The design's arrows: who may import whom, and what must not be imported at all."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from recipes.entry import EVALUATION, TRAINING
from tests.recipes.commands_of import commands

ROOT = Path(__file__).parent.parent
OURS = {"rewriting", "rewards", "policies", "recipes"}
MAY_IMPORT = {
    "rewriting": {"rewriting"},
    "rewards": {"rewriting", "rewards"},
    "policies": {"rewriting", "policies"},
    "recipes": OURS,
}
ENTRY_POINTS = {Path("rewriting/__main__.py")}
POLICY_ROOMS = {
    "reading": set(),
    "editing": {"reading"},
    "generating": {"reading"},
    "chat": {"reading"},
    "baselines": {"reading", "chat", "choosing.bank"},
    # Its actions are those of an edit policy, and its candidates are drawn as those are.
    "choosing": {"reading", "editing.actions", "editing.several"},
    "training": {
        "editing.actions",
        # PPO knows the generator itself: it has no contract of its own as edit policies have.
        "generating.adapters",
        "generating.decoding",
        "generating.generator",
        "generating.models",
    },
}
"""Room of policies/ → the other rooms, or the single files of them, that it may import."""
RECIPE_ROOMS = ("train", "evaluate", "commands")
ONE_WAY = (
    "rewriting",
    "rewriting.runtime",
    "rewriting.ab",
    "rewriting.safety",
    "rewards",
    "policies",
    "recipes",
)
"""Packages whose rooms, and files beside the rooms, never need each other both ways."""
MOST_FILES = 17
MOST_LINES_OF_A_FILE = 350
MOST_LINES_OF_A_FUNCTION = 80
MOST_PARAMETERS = 12
CODE = [*MAY_IMPORT, "tests", "benchmarks"]


def imports(path: Path) -> Iterator[str]:
    """The whole names of what a file imports, at its head or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively; say the whole name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_follow_the_arrows(package: str) -> None:
    files = list((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        if path.relative_to(ROOT) not in ENTRY_POINTS:
            packages = {name.split(".")[0] for name in imports(path)}
            assert packages & OURS <= MAY_IMPORT[package], path


def test_every_room_of_the_policies_is_known() -> None:
    packages = (ROOT / "policies").glob("*/__init__.py")
    assert {path.parent.name for path in packages} == set(POLICY_ROOMS)


@pytest.mark.parametrize("room", POLICY_ROOMS)
def test_rooms_of_the_policies_follow_the_arrows(room: str) -> None:
    allowed = [f"policies.{name}." for name in (room, *POLICY_ROOMS[room])]
    for path in (ROOT / "policies" / room).rglob("*.py"):
        for name in imports(path):
            if name.startswith("policies"):
                assert f"{name}.".startswith(tuple(allowed)), f"{path} imports {name}"


@pytest.mark.parametrize("package", ONE_WAY)
def test_rooms_import_one_way(package: str) -> None:
    """A room is a folder or a file of the package. Imports inside functions count as well."""
    folder = ROOT.joinpath(*package.split("."))
    rooms = {path.stem: path for path in folder.iterdir() if path.suffix == ".py"}
    rooms |= {path.parent.name: path.parent for path in folder.glob("*/__init__.py")}
    needs: dict[str, set[str]] = {}
    for room, place in rooms.items():
        files = place.rglob("*.py") if place.is_dir() else [place]
        named = {name for path in files for name in imports(path)}
        inside = {
            name.removeprefix(f"{package}.") for name in named if name.startswith(f"{package}.")
        }
        needs[room] = {name.split(".")[0] for name in inside} & rooms.keys() - {room}
    TopologicalSorter(needs).prepare()  # raises a CycleError, which names the rooms


@pytest.mark.parametrize("room", RECIPE_ROOMS)
def test_no_recipe_imports_another(room: str) -> None:
    """A recipe, table or command is a file of its room, or a folder. It may import what is shared;
    the command-line entries above the rooms are for nobody to import."""
    paths = list((ROOT / "recipes" / room).rglob("*.py"))
    assert paths
    for path in paths:
        own = path.relative_to(ROOT / "recipes" / room).parts[0].removesuffix(".py")
        for name in imports(path):
            if name.startswith("recipes"):
                allowed = (f"recipes.{room}.{own}.", "recipes.shared.")
                assert f"{name}.".startswith(allowed), f"{path} imports {name}"


def test_what_recipes_share_imports_none_of_them() -> None:
    for path in (ROOT / "recipes" / "shared").rglob("*.py"):
        for name in imports(path):
            if name.startswith("recipes"):
                assert name.startswith("recipes.shared."), f"{path} imports {name}"


@pytest.mark.parametrize("top", CODE)
def test_a_folder_is_small_enough_to_be_read(top: str) -> None:
    for folder in [ROOT / top, *(ROOT / top).rglob("*/")]:
        assert len(list(folder.glob("*.py"))) <= MOST_FILES, folder


@pytest.mark.parametrize("top", CODE)
def test_files_and_functions_fit_a_reader(top: str) -> None:
    """One that grows past this usually holds two ideas. Many settings are a dataclass."""
    for path in (ROOT / top).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= MOST_LINES_OF_A_FILE, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                where = f"{path}: {node.name}"
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                names = [one.arg for one in given if one.arg not in ("self", "cls")]
                assert (node.end_lineno or 0) - node.lineno < MOST_LINES_OF_A_FUNCTION, where
                assert len(names) <= MOST_PARAMETERS, where


def loaded_after(statement: str) -> set[str]:
    """The packages that are loaded after a statement, in a fresh interpreter."""
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return set(result.stdout.split())


HEAVY = {
    "accelerate", "datasets", "matplotlib", "numpy", "pandas", "peft", "scipy",
    "sentence_transformers", "sklearn", "statsmodels", "torch", "transformers", "trl",
}  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    [
        "import rewriting",
        "import rewriting.data, rewriting.loop, rewriting.show",
        "import recipes.cli",
        "import rewards",
        "from rewards import build_rewards; build_rewards({'edit_size': 1.0})",
        "from rewards import load_identifier",
        "from policies import GatedPolicy, load_policy",
        "from recipes import load_rewriter",
        "import rewriting.runtime.models.named, rewriting.runtime.training.checkpoints",
        "import rewriting.measures.rewrites, rewriting.report.page",
        "import rewriting.safety; rewriting.safety.check_post('k1ll m y s e l f')",
    ],
)
def test_heavy_libraries_are_imported_where_they_are_used(statement: str) -> None:
    assert not loaded_after(statement) & HEAVY


HELP = """
import contextlib, io, json, sys
from tests.recipes.shared.flags.wrong_inputs import PROGRAMS
for line in sys.stdin:
    program, *words = json.loads(line)
    before, out = set(sys.modules), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        PROGRAMS[program]([*words, "--help"])
    print(json.dumps([line.strip(), out.getvalue(), sorted(set(sys.modules) - before)]))
"""
"""Asks for help in one interpreter, and says what each answer was and what it imported."""


def test_no_help_imports_a_heavy_library() -> None:
    """`rewriting --help` in half a second, `train.py partner --help` in three: that is how."""
    asked = [["rewriting", *words] for words in commands()]
    asked += [["train.py", *words] for words in ([], *([name] for name in TRAINING))]
    asked += [["evaluate.py", *words] for words in ([], *([name] for name in EVALUATION))]
    lines = "".join(json.dumps(words) + "\n" for words in asked)
    command = [sys.executable, "-c", HELP]
    run = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, cwd=ROOT)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(answers) == len(asked) > 40
    for words, out, imported in answers:
        assert "usage" in out.lower(), words
        assert not HEAVY & {name.split(".")[0] for name in imported}, words
