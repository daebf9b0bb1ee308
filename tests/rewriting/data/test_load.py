"""Every format becomes the same exchanges; every kind of bad input is named."""

import json
import tracemalloc
from pathlib import Path

import pytest

from rewriting.data import BadRow, load_exchanges
from rewriting.errors import UserError
from tests.rewriting.data.rows import GOOD, ROWS, aloe_record, posts, write


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_every_file_type_gives_the_same_exchanges(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"rows.{ending}")
    assert posts(list(load_exchanges(path))) == ROWS
    assert posts(list(load_exchanges(path, limit=1))) == ROWS[:1]


def test_a_hub_data_set_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    asked: list[object] = []

    def load_dataset(*names: object, **options: object) -> list[dict[str, str]]:
        asked.append((names, options))
        return ROWS

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    exchanges = list(load_exchanges("some-org/replies:validation"))
    assert posts(exchanges) == ROWS
    assert exchanges[1].id == "replies:2"
    assert asked == [(("some-org/replies",), {"split": "validation", "streaming": True})]


def test_a_hub_that_cannot_be_reached_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    def load_dataset(*names: object, **options: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(UserError, match="Check the spelling, or the network"):
        list(load_exchanges("some-org/replies"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", GOOD + '{"seeker_post": \n', "x.jsonl, line 2: not valid JSON"),
        ("x.jsonl", GOOD + "[1]\n", "x.jsonl, line 2: a JSON object is needed, not list"),
        ("x.jsonl", GOOD + '{"seeker_post": "a"}\n', "line 2: no response_post; what is there"),
        ("x.jsonl", '{"seeker_post": "a", "response_post": 3}\n', "response_post is 3, not text"),
        ("x.jsonl", '{"seeker_post": " ", "response_post": "b"}\n', "seeker_post is blank"),
        (
            "x.jsonl",
            GOOD[:-2] + ', "explorations": 3}\n',
            "line 1: explorations is 3; a level is 0, 1 or 2",
        ),
        ("x.csv", "seeker_post,reply\na,b\n", "no column 'response_post'. Its columns are: seeker"),
        ("x.csv", "seeker_post,response_post\na,b,c\n", "line 2: 3 cells where the header has 2"),
        ("x.csv", 'seeker_post,response_post\na,"b"c\n', "line 2: not valid CSV"),
        ("x.csv", b"seeker_post,response_post\na,b\nc,caf\xe9\n", "line 3: not UTF-8 .byte 0xe9"),
        ("x.json", b'[\n{"seeker_post": "caf\xe9"}]', "line 2: not UTF-8"),
        ("x.json", '{"seeker_post": "a"}', "a JSON list of objects is needed"),
        ("x.json", '[{"seeker_post": "a",', "x.json, line 1: not valid JSON"),
        ("x.jsonl", "", "is empty"),
        ("x.jsonl", GOOD.replace("a b", "a \\ud83d"), "half a character"),
        ("x.jsonl", "9" * 5000 + "\n", "line 1: not valid JSON"),
        ("x.jsonl", GOOD[:-2] + ', "rationales": {"kind": []}}\n', "rationales of 'kind'"),
        ("x.json", json.dumps([aloe_record(spans=5)]), "spans must be a list"),
        ("x.tsv", "response_post\tpost\nb\ta\n", "no column 'seeker_post'"),
        ("x.csv", 'seeker_post,response_post\na,"b\nc,d\n', "line 2: not valid CSV.*1 lines after"),
        ("x.parquet", "no", "not a readable Parquet file"),
        ("x.docx", "a", "Known endings: .jsonl"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message):
        list(load_exchanges(path))


def test_lines_are_counted_through_cells_of_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('seeker_post,response_post\n"a\nb\nc",d\ne,\n')
    with pytest.raises(UserError, match="line 5: response_post is blank"):
        list(load_exchanges(path))


def test_bad_rows_can_be_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(GOOD + "broken\n" + GOOD + '{"seeker_post": "a"}\n' + GOOD)
    bad: list[BadRow] = []
    assert len(list(load_exchanges(path, on_bad_row=bad.append))) == 3
    assert [row.line for row in bad] == [2, 4]


def test_a_missing_source_gets_advice() -> None:
    with pytest.raises(UserError, match=r"there is no such file or folder.*sample:test"):
        list(load_exchanges("nowhere.csv"))
    with pytest.raises(UserError, match="the sample has the splits"):
        list(load_exchanges("sample:val"))


def test_an_output_in_the_input_folder_is_no_trouble(tmp_path: Path) -> None:
    write(tmp_path / "rows.jsonl")
    for name in ("out.jsonl.partial", "out.jsonl.job", "out.bad.jsonl", ".hidden.jsonl"):
        (tmp_path / name).write_text("no data")
    assert posts(list(load_exchanges(tmp_path))) == ROWS


def test_a_folder_without_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no data file"):
        list(load_exchanges(tmp_path))


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv"])  # Parquet comes in batches
def test_memory_does_not_grow_with_the_file(tmp_path: Path, ending: str) -> None:
    def peak(num_rows: int) -> int:
        path = tmp_path / f"{num_rows}.{ending}"
        row = {"seeker_post": "I failed again. " * 20, "response_post": "Oh no. " * 20}
        line = {
            "jsonl": json.dumps(row) + "\n",
            "json": json.dumps(row) + ",",
            "csv": ",".join(row.values()) + "\n",
        }[ending]
        start, end = {"jsonl": ("", ""), "json": ("[", "]"), "csv": (",".join(row) + "\n", "")}[
            ending
        ]
        path.write_text(start + (line * num_rows).rstrip(",") + end)
        tracemalloc.start()
        assert sum(1 for _ in load_exchanges(path)) == num_rows
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(10)  # whatever is imported and cached once
    assert peak(4000) < 1.5 * peak(1000) + 50_000
