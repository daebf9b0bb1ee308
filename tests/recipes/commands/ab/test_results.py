"""`rewriting ab plan|report|export|import` as a user types them."""

import json
import sys
from pathlib import Path

import pytest

from rewriting.ab.study.store import Store
from rewriting.ab.study.study import save_study
from tests.recipes.test_cli import Run, one_line_error, run
from tests.rewriting.ab.made_study import cast, made_study

__all__ = ["run"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished study: ours wins 20 of 24 votes."""
    study, folder = made_study(exchanges=6, raters=4), tmp_path / "study"
    save_study(study, folder)
    with Store(folder) as store:
        votes = cast(study, lambda rater, place, criterion: "theirs" if place == rater else "ours")
        for number, vote in enumerate(votes):
            store.append([vote], key=str(number))
    return folder


@pytest.mark.parametrize("command", ["plan", "report", "export", "import"])
def test_every_command_has_help(run: Run, command: str) -> None:
    code, out, _ = run("ab", command, "--help")
    assert code == 0
    assert "Example" in out


def test_plan(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    arguments = ("ab", "plan", "--raters", "12", "--raters", "3", "--json", path)
    code, out, _ = run(*arguments)
    assert code == 0
    assert "never enough" in out
    enough, never = json.loads(path.read_text())["plans"]
    assert enough["raters"] == 12
    assert enough["power"] >= 0.8
    assert never["items"] is None
    assert "--overwrite" in one_line_error(run(*arguments))
    assert run("ab", "plan", "--no-simulate", "--win-rate", "0.8", "--criteria", "1")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--win-rate", "0.5"],
        ["--win-rate", "1"],
        ["--rater-correlation", "0.6", "--item-correlation", "0.6"],
        ["--rater-correlation", "0.4", "--item-correlation", "0.5", "--win-rate", "0.9"],
    ],
)
def test_plan_explains_mistakes(run: Run, arguments: list[str]) -> None:
    one_line_error(run("ab", "plan", *arguments))


def test_plan_with_one_vote_a_pair(run: Run) -> None:
    code, out, _ = run("ab", "plan", "--votes-per-item", "1", "--raters", "16")
    assert code == 0
    assert "never enough" not in out


@pytest.mark.parametrize("arguments", [["report", "STUDY"]])
def test_without_the_extra_one_line_says_what_to_install(
    run: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
) -> None:
    for name in list(sys.modules):
        if name.startswith("rewriting.ab."):
            monkeypatch.delitem(sys.modules, name)
    package = sys.modules["rewriting.ab"]
    for name in ("plan", "analysis", "export", "statistics", "clustering", "simulation"):
        monkeypatch.delattr(package, name, raising=False)
    monkeypatch.setitem(sys.modules, "evalica", None)
    given = [str(folder) if one == "STUDY" else one for one in arguments]
    assert "empathic-rewriting[ab]" in one_line_error(run("ab", *given))


def test_report(run: Run, folder: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("r.json", "r.html", "r.csv")]
    arguments = ["ab", "report", folder, "--json", files[0], "--html", files[1], "--csv", files[2]]
    code, out, _ = run(*arguments)
    assert code == 0
    assert "20/0/4" in out
    (row, _) = json.loads(files[0].read_text())["main"]["comparisons"]
    assert row["ties_left_out"]["win_rate"] == pytest.approx(20 / 24)
    assert "<svg" in files[1].read_text()
    assert files[2].read_text().startswith("set,first,second,criterion")
    assert "--overwrite" in one_line_error(run(*arguments))
    assert run(*arguments, "--overwrite")[0] == 0


def test_report_of_nothing(run: Run, tmp_path: Path) -> None:
    assert "no study.json" in one_line_error(run("ab", "report", tmp_path))
    save_study(made_study(), tmp_path / "new")
    assert "nobody has judged" in one_line_error(run("ab", "report", tmp_path / "new"))


def test_export(run: Run, folder: Path, tmp_path: Path) -> None:
    votes, preferences = tmp_path / "votes.csv", tmp_path / "p.jsonl"
    assert run("ab", "export", folder, "--output", votes)[0] == 0
    assert votes.read_text().startswith("rater,excluded,item,kind")
    export = ("ab", "export", folder, "--output", preferences)
    code, out, _ = run(*export, "--format", "trl")
    assert code == 0
    assert "6 preferences (empathic)" in out
    rows = [json.loads(line) for line in preferences.read_text().splitlines()]
    assert set(rows[0]) > {"prompt", "chosen", "rejected"}
    assert "--overwrite" in one_line_error(run(*export))
    assert "no criterion 'warm'" in one_line_error(
        run(*export, "--overwrite", "--format", "trl", "--criterion", "warm")
    )
    assert ".csv or .jsonl" in one_line_error(run("ab", "export", folder, "--output", "x.txt"))


def test_sheets_out_and_results_in(run: Run, folder: Path, tmp_path: Path) -> None:
    sheets = tmp_path / "sheets"
    export = ("ab", "export", folder, "--output", sheets, "--format", "sheet")
    assert run(*export, "--rater", "1", "--rater", "2")[0] == 0
    assert sorted(path.name for path in sheets.iterdir()) == ["sheet-1.html", "sheet-2.html"]
    assert "--overwrite" in one_line_error(run(*export))
    assert run(*export, "--rater", "1", "--overwrite")[0] == 0
    with Store(folder) as store:
        assert [(one.rater, one.kind) for one in store.events()] == [(1, "sheet"), (2, "sheet")]
    page = (sheets / "sheet-1.html").read_text()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    answer = {
        "item": data["pages"][0]["item"],
        "answers": {"empathic": "A", "fluent": "B"},
        "comment": "",
        "harmful": False,
        "seconds": 5,
        "time": "2099-01-01T00:00:00Z",
    }
    row = {"format": 1, "rater": 1, "key": data["key"], "consent": True, "answers": [answer]}
    results = tmp_path / "results-1.json"
    results.write_text(json.dumps(row))
    code, out, _ = run("ab", "import", folder, results, results)
    assert code == 0
    assert "1 new vote, 0 known already" in out
    assert "0 new votes, 1 known already" in out
    results.write_text("{}")
    assert "not a results file" in one_line_error(run("ab", "import", folder, results))
