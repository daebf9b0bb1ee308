"""`rewriting insights` on a file with planted effects, and on files that cannot be read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recipes.cli import main
from rewriting.errors import UserError
from rewriting.insights.columns import Wanted, read_columns
from rewriting.insights.findings import experience, findings, periods, series
from tests.rewriting.insights.planted import PLANTED, command, write_planted

ECHOES = {
    "over time",
    "with experience",
    "outcome thanked",
    "forum: night against others",
    "forum: day against others",
    "forum: weekend against others",
    "appraisal Pleasantness against others",
    "appraisal Certainty against others",
    "appraisal Advice against others",
}
"""Questions whose answer moves with a planted effect: the sum with its part, a group of a column
when another one differs from the rest."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("insights")
    write_planted(folder / "scores.jsonl", 12_000)
    with pytest.raises(SystemExit, match="0"):
        main(["insights", *command(folder)])
    page = (folder / "insights.html").read_text(encoding="utf-8")
    return {"page": page, **json.loads((folder / "insights.json").read_text())}


def test_what_was_planted_is_found_and_nothing_else(report: dict[str, Any]) -> None:
    standing = {(one["question"], one["measure"]) for one in report["findings"] if one["stands"]}
    assert standing >= PLANTED
    assert {question for question, _ in standing} <= ECHOES
    untouched = {
        ("over time", "explorations"),
        ("over time", "emotional_reactions"),
        ("with experience", "interpretations"),
        ("with experience", "explorations"),
        ("forum: night against others", "interpretations"),
        ("outcome thanked", "explorations"),
    }
    assert not standing & untouched


def test_signs_and_sizes(report: dict[str, Any]) -> None:
    found = {(one["question"], one["measure"]): one for one in report["findings"]}
    assert found["with experience", "emotional_reactions"]["estimate"] < 0
    assert found["forum: night against others", "explorations"]["estimate"] > 0.2
    advice = found["appraisal Advice against others", "met"]
    assert advice["low"] <= -0.15 <= advice["high"]
    thanked = found["outcome thanked", "interpretations"]
    assert thanked["low"] <= 0.06 <= thanked["high"]


def test_the_page_is_whole_and_loads_nothing(report: dict[str, Any]) -> None:
    page = report["page"]
    assert "What stands" in page
    assert "with experience" in page
    assert page.count("<svg") >= 1 + 4 * 4
    assert "http" not in page.replace("http-equiv", "")


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scored(**more: Any) -> dict[str, Any]:
    return {"emotional_reactions": 1, "interpretations": 0, "explorations": 2} | more


def test_experience_counts_a_persons_replies_by_time(tmp_path: Path) -> None:
    rows = [
        scored(who="a", when="2024-02-01"),
        scored(who="b", when=1_700_000_000),
        scored(who="a", when="2024-01-01T10:00:00+00:00"),
        scored(who="a", when=1_704_000_000_000),  # milliseconds: the end of 2023
    ]
    columns = read_columns(write_rows(tmp_path / "s.jsonl", rows), Wanted("who", "when"))
    assert experience(columns).tolist() == [3, 1, 2, 1]


def test_times_that_are_numbers_are_not_years(tmp_path: Path) -> None:
    rows = [scored(when=when) for when in ("20240531", 20240531, "2024-05-31", "", None, "nan")]
    columns = read_columns(write_rows(tmp_path / "s.jsonl", rows), Wanted(time="when"))
    assert columns.day_N is not None
    assert columns.day_N[:3].tolist() == [19874.0] * 3
    assert np.isnan(columns.day_N[3:]).all()


def test_levels_and_columns_that_came_through_a_table(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(
        "emotional_reactions,interpretations,explorations,met\n"
        '1.0,0.0,2,"{""Advice"": 0.5, ""Trope"": null}"\n1,0,0,\n'
    )
    columns = read_columns(path, Wanted(appraisals="met"))
    assert columns.levels_NK.tolist() == [[1, 0, 2], [1, 0, 0]]
    assert columns.met_M.tolist() == [0.5]


def test_a_row_of_json_may_lack_a_column(tmp_path: Path) -> None:
    rows = [scored(), scored(forum="day", likes=2), scored(forum="night")]
    wanted = Wanted(groups=["forum"], outcomes=["likes"])
    columns = read_columns(write_rows(tmp_path / "s.jsonl", rows), wanted)
    assert columns.groups["forum"].codes_N.tolist() == [-1, 0, 1]
    assert columns.outcomes["likes"][1] == 2


def test_who_answers_is_compared_and_drawn(tmp_path: Path) -> None:
    rows = [
        scored(forum=forum, met={"Certainty": share, "Advice": 0})
        for place in range(40)
        for forum, share in (("day", place % 2), ("night", 1))
    ]
    rows.append(scored(forum="night", met={}))  # the larger group of replies, not of appraisals
    wanted = Wanted(groups=["forum"], appraisals="met")
    columns = read_columns(write_rows(tmp_path / "s.jsonl", rows), wanted)
    asked = findings(columns)
    assert {one.question for one in asked if one.measure == "empathy"} == {
        "forum: day against night"
    }
    found = {one.question: one.slope.estimate for one in asked if one.measure == "met"}
    assert found == {
        "appraisal Certainty against Advice": pytest.approx(0.75),
        "appraisals met, forum: day against night": pytest.approx(-0.25),
    }
    shown = series(columns)["appraisals met by forum"]["met"]
    assert [(point.label, point.value) for point in shown] == [("day", 0.25), ("night", 0.5)]


def test_no_interval_goes_beyond_what_can_be(tmp_path: Path) -> None:
    rows = [scored(forum="day", who=f"p{n % 2}", explorations=2 * (n % 2)) for n in range(40)]
    wanted = Wanted(user="who", groups=["forum"])
    columns = read_columns(write_rows(tmp_path / "s.jsonl", rows), wanted)
    (point,) = series(columns)["by forum"]["explorations"]
    assert (point.low, point.value, point.high) == (0.0, 1.0, 2.0)


def test_periods_grow_with_the_span() -> None:
    codes, labels = periods(np.array([0.0, 31, 31.5, np.nan]))
    assert (codes.tolist(), labels) == ([0, 1, 1, -1], ["1970-01", "1970-02"])
    assert periods(np.arange(0.0, 365 * 4, 20))[1][:2] == ["1970 Q1", "1970 Q2"]
    assert periods(np.arange(0.0, 365 * 12, 30))[1][-1] == "1981"


def test_a_file_without_named_columns_asks_nothing(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "s.jsonl", [scored(), scored()])
    assert findings(read_columns(path, Wanted())) == []


@pytest.mark.parametrize(
    ("row", "wanted", "message"),
    [
        ({"emotional_reactions": 1}, Wanted(), r"no column interpretations: score it first"),
        (scored(), Wanted(user="who"), r"no column 'who'\. It has: emotional_reactions"),
        (scored(explorations=3), Wanted(), r"line 1: explorations is 3; a level is 0, 1 or 2"),
        (scored(day="soon"), Wanted(time="day"), r"line 1: time day is 'soon'; write 2024-05-31"),
        (scored(day=2024), Wanted(time="day"), r"line 1: time day is 2024; write 2024-05-31"),
        (scored(day=float("inf")), Wanted(time="day"), r"line 1: time day is inf; write"),
        (scored(ok=float("inf")), Wanted(outcomes=["ok"]), r"line 1: outcome ok is inf; a num"),
        (scored(a={"Trope": 2}), Wanted(appraisals="a"), r"0 to 1 each"),
        (scored(ok="maybe"), Wanted(outcomes=["ok"]), r"line 1: outcome ok is 'maybe'; a number"),
        (scored(a=[1]), Wanted(appraisals="a"), r'line 1: a is \[1\]; a mapping such as \{"Ple'),
    ],
)
def test_bad_files_are_named(
    row: dict[str, Any], wanted: Wanted, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        read_columns(write_rows(tmp_path / "s.jsonl", [row]), wanted)


def test_a_table_without_rows_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("emotional_reactions,interpretations,explorations\n")
    with pytest.raises(UserError, match="holds no row"):
        read_columns(path, Wanted())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--output", "s.jsonl"], "--output must be a .html file"),
        (["--output", "page.html", "--json", "s.jsonl"], "is already the input"),
    ],
)
def test_the_input_is_never_overwritten(
    flags: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = write_rows(tmp_path / "s.jsonl", [scored()]).read_text()
    with pytest.raises(SystemExit):
        main(["insights", "--input", "s.jsonl", *flags, "--overwrite"])
    assert message in capsys.readouterr().err
    assert (tmp_path / "s.jsonl").read_text() == before


def test_nothing_is_overwritten_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_rows(tmp_path / "s.jsonl", [scored()])
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(SystemExit):
        main(["insights", "--input", str(path), "--output", str(tmp_path / "page.html")])
    assert "exists. Pass --overwrite" in capsys.readouterr().err
    assert (tmp_path / "page.html").read_text() == "mine"
