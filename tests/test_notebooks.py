"""The code cells of the notebooks run, one after the other, as a script. Jupyter is not needed."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.light import light_models

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]


def run_notebook(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """Run the code cells in one namespace; it, and the values that cells show at their end."""
    namespace: dict[str, Any] = {"__name__": "notebook"}
    shown = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        name = f"{path.name}, cell {number}"
        exec(compile(tree, name, "exec"), namespace)
        if last is not None:
            value = compile(ast.Expression(last.value), name, "eval")  # type: ignore[attr-defined]
            shown.append(eval(value, namespace))
    return namespace, [value for value in shown if value is not None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_two() -> None:
    assert NAMES == ["own_reward_and_audit", "quick_start"]


def test_the_quick_start_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    light_models(monkeypatch)
    found, shown = run_notebook(NOTEBOOKS[1])
    crisis = found["rows"][-1]
    assert (crisis.held_back, crisis.result().rewritten_response) == (True, "Try again.")
    assert list(shown[0]["reasons"].map(len)) == [0, 0, 1]
    assert [one.empathy for one in found["assessments"]] == [2, 2]


@pytest.mark.integration
def test_the_quick_start_runs_with_its_models(folder: Path) -> None:
    found, _ = run_notebook(NOTEBOOKS[1])
    exam, dog, crisis = found["rows"]
    assert exam.result().changed or dog.result().changed
    assert crisis.held_back
    plain, kind = found["assessments"]
    assert kind.empathy > plain.empathy


def test_the_audit_of_an_own_reward_runs(folder: Path) -> None:
    found, shown = run_notebook(NOTEBOOKS[0])
    exam, fine = shown[0]
    assert (exam, fine) == (pytest.approx(4 / 6), 0.0)  # went, exam, mind, blank; badly, your
    row, totals = shown[1]
    assert list(row) == ["takes_up", "repetition", "edit_size"]
    assert totals == [pytest.approx(row["takes_up"] + 0.5 * row["repetition"])]
    assert found["found"]["n"] == len(found["items"]) == sum(found["best"].values()) > 20


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebooks_are_saved_without_outputs(path: Path) -> None:
    book = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in code] == [[]] * len(code)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
