"""Files that were made to break a reader, or are damaged."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewriting.data import BadRow, load_exchanges
from rewriting.errors import UserError
from tests.rewriting.data.rows import GOOD, ROWS, aloe_record, posts, write


@pytest.mark.parametrize("rest", [" x", "\n[]", " " * (1 << 17) + "{}"])
def test_text_after_a_json_list_is_named(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"seeker_post": "a", "response_post": "b"}]' + rest)
    with pytest.raises(UserError, match="line 1: there is more text after the list"):
        list(load_exchanges(str(path)))


DEEP = "[" * 900 + "]" * 900
DIALOGUE = {"conv_id": "c", "utterance_idx": 1, "context": "x", "prompt": "y", "utterance": "z"}
LEVEL = {"sp_id": 1, "rp_id": 2, "seeker_post": "a", "response_post": "b", "rationales": ""}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", GOOD + GOOD[:-2] + f', "tags": {DEEP}}}\n', "line 2: 'tags' is nested more"),
        ("x.jsonl", "[" * 100_000 + "\n", "line 1: not valid JSON .nested too deep"),
        ("x.json", "[" + GOOD + "," + "[" * 100_000, "line 2: not valid JSON .nested too deep"),
        ("x.json", "[" + GOOD + "," + "9" * 5000 + "]", "line 2: not valid JSON .Exceeds"),
        ("x.jsonl", GOOD[:-2] + ', "n": ' + "9" * 400 + "}\n", "'n' holds a number of more than"),
        ("x.jsonl", GOOD[:-2] + ', "topic": "\\ud83d"}\n', "line 1: 'topic' holds half a char"),
        ("x.jsonl", GOOD[:-2] + ', "\\udc00": 1}\n', "holds half a character"),
        ("x.jsonl", GOOD[:-2] + ', "rationales": "' + DEEP + '"}\n', "rationales must map"),
        ("x.jsonl", GOOD[:-2] + ', "seeker_id": "\\ud83d"}\n', "'seeker_id' holds half"),
        (
            "explorations.jsonl",
            json.dumps(LEVEL | {"level": int("9" * 290)}) + "\n",
            "line 1: level is 9+…; a level is",
        ),
        ("x.jsonl", json.dumps(DIALOGUE | {"prompt": 3}), "line 1: prompt is 3, not text"),
        ("x.jsonl", json.dumps(DIALOGUE | {"prompt": None}), "line 1: no prompt"),
        ("x.jsonl", json.dumps(DIALOGUE | {"utterance_idx": 1e999}), "utterance_idx is inf, not"),
        ("x.json", json.dumps([aloe_record(full_text=3)]), "full_text is 3, not text"),
        ("x.csv", "seeker_post,response_post,seeker_post\na,b,c\n", "'seeker_post' twice. Rename"),
        ("x.csv", 'seeker_post,"response_post"x\na,b\n', "its header is not valid CSV"),
    ],
)
def test_hostile_files_are_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        list(load_exchanges(path))
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(path))
    assert "\n" not in str(caught.value)


def test_a_damaged_parquet_footer_is_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.parquet")
    content = bytearray(path.read_bytes())
    rows, refusals = list(load_exchanges(path)), []
    for place in range(len(content) - 60, len(content) - 8):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert list(load_exchanges(path)) == rows  # a comment in the footer may change
        except UserError as error:
            refusals.append(str(error))
    assert refusals
    assert all(str(path) in line and "\n" not in line for line in refusals)


def test_parquet_text_that_is_not_utf8_is_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    texts = pa.array([b"fine", b"caf\xe9", b"fine too"], pa.binary()).view(pa.string())
    table = pa.table({"seeker_post": texts, "response_post": ["a", "b", "c"]})
    pq.write_table(table, path)
    bad: list[BadRow] = []
    assert len(list(load_exchanges(path, on_bad_row=bad.append))) == 2
    assert [row.line for row in bad] == [2]
    with pytest.raises(UserError, match=r"line 2: cannot be read .*Mend the row"):
        list(load_exchanges(path))


def test_doubled_parquet_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = [pa.array(["a"]), pa.array(["b"]), pa.array(["c"])]
    pq.write_table(pa.table(columns, ["seeker_post", "response_post", "response_post"]), path)
    with pytest.raises(UserError, match="'response_post' twice"):
        list(load_exchanges(path))


def test_a_hub_row_with_half_a_character_is_a_bad_row(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    rows = [ROWS[0] | {"topic": "\ud83d"}, ROWS[1]]
    monkeypatch.setattr(datasets, "load_dataset", lambda *names, **options: rows)
    bad: list[BadRow] = []
    assert posts(list(load_exchanges("some-org/replies", on_bad_row=bad.append))) == ROWS[1:]
    assert [row.line for row in bad] == [1]
