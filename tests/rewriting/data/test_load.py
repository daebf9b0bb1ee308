"""Every format becomes the same exchanges; every kind of bad input is named."""

import csv
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rewriting.data import BadRow, load_exchanges
from rewriting.errors import UserError
from rewriting.exchange import Exchange, Label

ROWS = [
    {"seeker_post": "I failed.", "response_post": 'Oh, "no"!\nTry again.'},
    {"seeker_post": "I moved, alone.", "response_post": "How is it? 😊"},
]


def posts(exchanges: list[Exchange]) -> list[dict[str, str]]:
    return [
        {"seeker_post": exchange.seeker_post, "response_post": exchange.response_post}
        for exchange in exchanges
    ]


def write(path: Path) -> Path:
    """ROWS in the format that the path's ending names."""
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n")
    elif path.suffix == ".json":
        path.write_text(json.dumps(ROWS, indent=1))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    else:
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(file, list(ROWS[0]), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(ROWS)
    return path


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_every_file_type_gives_the_same_exchanges(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path / f"rows.{ending}")
    assert posts(list(load_exchanges(path))) == ROWS
    assert posts(list(load_exchanges(path, limit=1))) == ROWS[:1]


def test_partners_tsv_has_no_header(tmp_path: Path) -> None:
    path = tmp_path / "partner.tsv"
    path.write_text("I failed.\tTry again.\nI moved.\tHow is it?\n")
    assert [exchange.seeker_post for exchange in load_exchanges(path)] == ["I failed.", "I moved."]


def test_quotation_marks_mean_nothing_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "partner.tsv"
    path.write_text('"Be strong" they say\tok\n"never\tsure\n')
    first, second = load_exchanges(path)
    assert (first.seeker_post, second.seeker_post) == ('"Be strong" they say', '"never')


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


def test_our_own_lines_carry_labels_history_and_other_columns(jsonl: Callable[..., Path]) -> None:
    row = {
        "id": "a",
        "seeker_id": "s",
        "seeker_post": "I failed.",
        "response_post": "I'm sorry. What happened?",
        "history": ["Hi."],
        "emotional_reactions": 2,
        "explorations": "1",
        "rationales": {"emotional_reactions": ["I'm sorry."]},
        "topic": "study",
    }
    (exchange,) = load_exchanges(jsonl([row]))
    assert exchange.labels == {
        "emotional_reactions": Label(2, ("I'm sorry.",)),
        "explorations": Label(1),
    }
    assert exchange.empathy is None
    assert exchange.history == ("Hi.",)
    assert exchange.extra == {"topic": "study"}
    assert list(load_exchanges(jsonl([exchange.row()], "again.jsonl"))) == [exchange]


def epitome_file(folder: Path, mechanism: str, rows: list[list[str]]) -> Path:
    path = folder / f"{mechanism}-reddit.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sp_id", "rp_id", "seeker_post", "response_post", "level", "rationales"])
        writer.writerows(rows)
    return path


def test_epitomes_three_files_are_joined(tmp_path: Path) -> None:
    pair = ["s1", "r1", "I failed.", "I'm sorry. Why?"]
    other = ["s2", "r2", "I moved.", "Ok."]
    epitome_file(tmp_path, "emotional-reactions", [[*pair, "2", "I'm sorry.|"], [*other, "0", ""]])
    epitome_file(tmp_path, "interpretations", [[*other, "0", ""], [*pair, "0", ""]])
    epitome_file(tmp_path, "explorations", [[*pair, "1", "Why?|"], [*other, "0", ""]])
    first, second = load_exchanges(tmp_path)
    assert first.id == "s1:r1"
    assert first.seeker_id == "s1"
    assert first.labels["emotional_reactions"] == Label(2, ("I'm sorry.",))
    assert first.labels["explorations"] == Label(1, ("Why?",))
    assert (first.empathy, second.empathy) == (3, 0)


def test_epitomes_repeated_pairs_stay_apart(tmp_path: Path) -> None:
    pair = ["s1", "r1", "I failed.", "Why?"]
    for mechanism in ("emotional-reactions", "interpretations", "explorations"):
        epitome_file(tmp_path, mechanism, [[*pair, "0", ""], [*pair, "2", "Why?"]])
    assert [exchange.empathy for exchange in load_exchanges(tmp_path)] == [0, 6]


def test_an_epitome_file_must_tell_its_mechanism(tmp_path: Path) -> None:
    path = epitome_file(tmp_path, "levels", [["s", "r", "I failed.", "Why?", "1", ""]])
    with pytest.raises(UserError, match="does not tell which mechanism"):
        list(load_exchanges(path))


def test_empathetic_dialogues_become_listener_turns_with_history(tmp_path: Path) -> None:
    path = tmp_path / "valid.csv"
    path.write_text(
        "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"
        'c1,1,afraid,A "storm,0,It was dark_comma_ "very,,\n'
        "c1,2,afraid,A storm,1,Oh no!,,\n"
        "c1,3,afraid,A storm,0,I hid.,,\n"
        "c1,4,afraid,A storm,1,Wise_comma_ too.,,\n"
        "c2,1,proud,A win,0,I won.,,\n"
    )
    first, second = load_exchanges(path)
    assert (first.seeker_post, first.response_post) == ('It was dark, "very', "Oh no!")
    assert second.history == ('It was dark, "very', "Oh no!")
    assert (second.seeker_post, second.response_post) == ("I hid.", "Wise, too.")
    assert second.seeker_id == "c1"
    assert second.extra["emotion"] == "afraid"


def aloe_record(**changes: object) -> dict[str, object]:
    full_text = "target:\n\nI failed.\n\nobserver:\n\nThat hurts."
    record = {"target_text": "I failed.", "observer_text": "That hurts.", "full_text": full_text}
    spans = {"spans": [[9, 18, "Objective Experience"]], "alignments": [[[9, 18], [31, 42]]]}
    return record | spans | changes


def test_aloes_records_keep_spans_and_alignments(tmp_path: Path) -> None:
    path = tmp_path / "aloe.json"
    path.write_text(json.dumps([aloe_record()]))
    (exchange,) = load_exchanges(path)
    assert (exchange.seeker_post, exchange.response_post) == ("I failed.", "That hurts.")
    start, end, label = exchange.extra["spans"][0]
    assert (exchange.extra["full_text"][start:end], label) == ("I failed.", "Objective Experience")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"spans": [[0, 5, "Mood"]]}, "'Mood' is not one of ALOE's labels"),
        ({"spans": [[0, 500, "Trope"]]}, "inside full_text"),
        ({"spans": [[0, 5]]}, "a span is"),
        ({"alignments": [[[0, 5]]]}, "an alignment is"),
        ({"observer_text": ""}, "observer_text is blank"),
    ],
)
def test_broken_aloe_records_are_named(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    path = tmp_path / "aloe.json"
    path.write_text(json.dumps([aloe_record(), aloe_record(**changes)], indent=0))
    with pytest.raises(UserError, match=reason):
        list(load_exchanges(path))


GOOD = '{"seeker_post": "a b", "response_post": "c d"}\n'


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


def test_after_a_bad_utterance_the_rest_of_its_conversation_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "valid.csv"
    head = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"
    turns = [("1", "I hid."), ("2", " "), ("3", "Yes."), ("4", "Oh.")]
    path.write_text(head + "".join(f"c,{n},afraid,x,0,{text},,\n" for n, text in turns))
    bad: list[BadRow] = []
    assert list(load_exchanges(path, on_bad_row=bad.append)) == []
    assert [row.line for row in bad] == [3, 4, 5]


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
