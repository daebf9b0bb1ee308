"""`rewriting score --alignment`, with tiny models, and `rewriting insights` on what it writes."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from recipes.cli import main
from recipes.commands import score
from rewards.appraisals.alignment.model import AlignmentHead, SiameseAlignment
from rewards.appraisals.appraiser import AppraisalHead, SentenceAppraiser
from rewards.appraisals.sentence_states import SentenceStates
from rewards.identifiers import named
from rewards.terms.appraisal_alignment import AlignmentReader
from tests.recipes.words import Words
from tests.tiny_lm import write_tiny_encoder

POSTS = ("I failed. It was my own fault.", "My cat died today. Why?", "Nobody calls me.")
REPLIES = ("So sorry. It was not your fault.", "Get some rest.", "A cat is a friend. I know.")


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "load_identifier", lambda name="words", **_: Words())


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    """The flags that name a tiny appraiser and a tiny alignment model."""
    torch.manual_seed(0)
    states = SentenceStates.load(str(write_tiny_encoder(tmp_path)))
    head = AppraisalHead(states.width)
    torch.nn.init.normal_(head.linear.weight)
    SentenceAppraiser(states, head).save(tmp_path / "appraiser")
    rules = AlignmentHead()
    torch.nn.init.normal_(rules.rules.weight)
    torch.nn.init.zeros_(rules.rules.bias)
    SiameseAlignment(states, rules).save(tmp_path / "aligner")
    names = {"--appraisals": "appraiser", "--alignment": "aligner"}
    return [word for flag, name in names.items() for word in (flag, str(tmp_path / name))]


def source(path: Path, count: int = 90) -> Path:
    rows = [
        {
            "id": str(n),
            "seeker_post": f"{POSTS[n % 3]} Day {n}.",
            "response_post": REPLIES[n // 3 % 3],
            "author": f"p{n % 7}",
            "likes": n % 5,
            "thanked": n % 2 == 0,
            "tags": ["a", "b"] if n else None,
            "rate": 0.5 if n % 2 else 1,
            "when": datetime(2024, 1, 1 + n % 28, tzinfo=UTC),
        }
        for n in range(count)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def run(*words: str | Path) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    return int(stop.value.code or 0)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_from_replies_to_insights_without_a_script_between(
    models: list[str], tmp_path: Path, ending: str
) -> None:
    scores, page = tmp_path / f"scores.{ending}", tmp_path / "page.html"
    flags = ["--input", source(tmp_path / "in.parquet"), "--output", scores, *models]
    assert run("score", *flags) == 0
    columns = "--user author --time when --group thanked --outcome likes --appraisals appraisals"
    found = tmp_path / "found.json"
    flags = ["--input", scores, "--output", page, "--json", found, *columns.split()]
    assert run("insights", *flags) == 0
    report = json.loads(found.read_text())
    questions = {one["question"].split(":")[0] for one in report["findings"]}
    assert questions >= {"over time", "with experience", "thanked", "outcome likes"}
    assert any(question.startswith("appraisal") for question in questions)
    assert "appraisals met by thanked" in page.read_text(encoding="utf-8")


def test_a_line_says_what_of_the_post_is_met(models: list[str], tmp_path: Path) -> None:
    output = tmp_path / "scores.jsonl"
    run("score", "--input", source(tmp_path / "in.parquet", 9), "--output", output, *models)
    rows = lines(output)
    reader = AlignmentReader.load(models[1], models[3])
    readings = reader([row["seeker_post"] for row in rows], [row["response_post"] for row in rows])
    for row, reading in zip(rows, readings, strict=True):
        labels = {one.label for one in reading.target} - {"None"}
        assert row["appraisals"].keys() == labels
        assert all(0 <= share <= 1 for share in row["appraisals"].values())
        assert 0 <= row["appraisal_alignment"] <= 1
    shares = {share for row in rows for share in row["appraisals"].values()}
    assert len(shares) > 1  # some are met and some are not


def test_a_table_keeps_the_other_columns(tmp_path: Path) -> None:
    output = tmp_path / "scores.parquet"
    assert run("score", "--input", source(tmp_path / "in.parquet", 4), "--output", output) == 0
    table = pq.read_table(output)
    types = {name: str(table.schema.field(name).type) for name in table.column_names[-6:]}
    assert types == {
        "author": "string",
        "likes": "int64",
        "thanked": "bool",
        "tags": "string",
        "rate": "double",
        "when": "string",
    }
    second = table.to_pylist()[1]
    assert (second["likes"], second["rate"], json.loads(second["tags"])) == (1, 0.5, ["a", "b"])
    assert second["when"] == "2024-01-02 00:00:00+00:00"
    assert "appraisals" not in table.column_names


def test_a_stopped_run_goes_on_and_gives_the_same(
    models: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score, "CHUNK", 4)
    file = source(tmp_path / "in.parquet", 14)
    flags = ["--input", file, *models, "--output"]
    run("score", *flags, tmp_path / "whole.jsonl")
    read = AlignmentReader.__call__
    calls: list[int] = []

    def stopping(self: AlignmentReader, *texts: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return read(self, *texts)

    monkeypatch.setattr(AlignmentReader, "__call__", stopping)
    assert run("score", *flags, tmp_path / "cut.jsonl") == 130
    assert not (tmp_path / "cut.jsonl").exists()
    assert run("score", *flags, tmp_path / "cut.jsonl") == 0
    assert len(calls) == 3 + 2  # the last two chunks of four
    assert (tmp_path / "cut.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()


def test_a_name_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--input", source(tmp_path / "in.parquet", 2), "--output", tmp_path / "out.jsonl"]
    assert run("score", *flags, "--alignment", tmp_path / "nowhere") == 1
    assert "does not exist" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet"]
