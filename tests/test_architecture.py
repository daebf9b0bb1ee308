"""The design's arrows: who may import whom, and what must not be imported at all."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = {"rewriting", "rewards", "policies", "recipes"}
MAY_IMPORT = {
    "rewriting": {"rewriting"},
    "rewards": {"rewriting", "rewards"},
    "policies": {"rewriting", "policies"},
    "recipes": OURS,
}
ENTRY_POINTS = {Path("rewriting/__main__.py")}


def imports(path: Path) -> Iterator[str]:
    """The top-level packages of ours that a file imports, at its head or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively; say the whole name"
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_follow_the_arrows(package: str) -> None:
    files = list((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        if path.relative_to(ROOT) not in ENTRY_POINTS:
            assert set(imports(path)) & OURS <= MAY_IMPORT[package], path


def loaded_after(statement: str) -> set[str]:
    """The packages that are loaded after a statement, in a fresh interpreter."""
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return set(result.stdout.split())


HEAVY = {"torch", "transformers", "trl", "peft", "datasets", "sentence_transformers", "matplotlib"}


@pytest.mark.parametrize(
    "statement",
    [
        "import rewriting",
        "import rewriting.data, rewriting.loop, rewriting.show",
        "import recipes.cli",
        "import rewards",
        "from rewards import build_rewards; build_rewards({'edit_size': 1.0})",
        "from rewards import load_identifier",
        "import rewriting.runtime.models, rewriting.runtime.checkpoints",
        "import rewriting.measures, rewriting.report.page",
        "import rewriting.safety; rewriting.safety.check_post('k1ll m y s e l f')",
    ],
)
def test_heavy_libraries_are_imported_where_they_are_used(statement: str) -> None:
    assert not loaded_after(statement) & HEAVY
