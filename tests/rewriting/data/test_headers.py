"""Files as people have them: semicolons, tabs, Excel, and columns under other names."""

import sys
from pathlib import Path

import pytest

from rewriting.data import load_exchanges
from rewriting.data.headers import delimiter_of, parse_columns
from rewriting.errors import UserError


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("comma.csv", 'seeker_post,response_post\n"I failed; again.","No, really?"\n'),
        ("semicolon.csv", 'seeker_post;response_post\n"I failed; again.";No, really?\n'),
        ("bom.csv", '\ufeffSeeker Post;Response post\n"I failed; again.";No, really?\n'),
        ("tab.csv", "SEEKER_POST\tresponse-post\nI failed; again.\tNo, really?\n"),
        ("sep.csv", 'sep=;\nseeker_post;response_post\n"I failed; again.";No, really?\n'),
        ("tab.tsv", "seeker_post\tresponse_post\nI failed; again.\tNo, really?\n"),
        ("plain.tsv", "I failed; again.\tNo, really?\n"),
        ("any.jsonl", '{"Seeker Post": "I failed; again.", "RESPONSE_POST": "No, really?"}\n'),
    ],
)
def test_what_a_spreadsheet_saves_is_read(tmp_path: Path, name: str, text: str) -> None:
    (exchange,) = load_exchanges(written(tmp_path, name, text))
    assert (exchange.seeker_post, exchange.response_post) == ("I failed; again.", "No, really?")
    assert not exchange.extra


def test_columns_are_called_by_other_names(tmp_path: Path) -> None:
    path = written(tmp_path, "x.csv", "Post Text;reply;Mood\nI failed.;Rest.;sad\n")
    columns = parse_columns("seeker_post=post_text, response_post=reply")
    (exchange,) = load_exchanges(path, columns=columns)
    assert (exchange.seeker_post, exchange.response_post) == ("I failed.", "Rest.")
    assert exchange.extra == {"Mood": "sad"}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("seeker_pots=a", "Did you mean seeker_post?"),
        ("seeker_post", "write it as seeker_post="),
        ("seeker_post=a,seeker_post=b", "names seeker_post twice"),
        ("seeker_post=posst", "no column 'posst', which --columns names. Did you mean post?"),
        ("seeker_post=post,response_post=post", "--columns names 'post' twice"),
        ("id=post", "has a column id already"),
    ],
)
def test_a_mistake_in_columns_is_said(tmp_path: Path, columns: str, message: str) -> None:
    path = written(tmp_path, "x.csv", "id,post,reply\n1,a,b\n")
    with pytest.raises(UserError) as error:
        list(load_exchanges(path, columns=parse_columns(columns)))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_two_spellings_of_a_column_are_one_too_many(tmp_path: Path) -> None:
    path = written(tmp_path, "x.csv", "Seeker Post,SEEKER_POST,response_post\na,b,c\n")
    with pytest.raises(UserError, match="twice"):
        list(load_exchanges(path))
    path = written(tmp_path, "y.csv", "Seeker Post,seeker_post,response_post\na,b,c\n")
    (exchange,) = load_exchanges(path)  # the exact name is the one that counts
    assert (exchange.seeker_post, exchange.extra) == ("b", {"Seeker Post": "a"})


def test_a_bad_row_under_a_note_of_excel_has_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "x.csv", "sep=;\nseeker_post;response_post\na;b\nc\n")
    with pytest.raises(UserError, match=r"x\.csv, line 4: 1 cells where the header has 2"):
        list(load_exchanges(path))


@pytest.mark.parametrize(
    ("head", "ending", "delimiter"),
    [
        ("a,b;c", ".csv", ","),
        ("seeker_post,response_post;a;b;c", ".csv", ","),
        ("a;b;c,d", ".csv", ";"),
        ("a\tb", ".csv", "\t"),
        ("one, two, three\tb", ".tsv", "\t"),
        ("a;b", ".tsv", ";"),
    ],
)
def test_the_delimiter_is_seen_in_the_header(head: str, ending: str, delimiter: str) -> None:
    assert delimiter_of(head, ending) == delimiter


def test_epitome_of_a_european_excel_is_joined(tmp_path: Path) -> None:
    head, row = "sp_id;rp_id;seeker_post;response_post;level;rationales", "1;2;a;b;{};"
    for level, name in enumerate(("emotional-reactions", "interpretations", "explorations")):
        written(tmp_path, f"{name}.csv", f"{head}\n{row.format(level)}\n")
    (exchange,) = load_exchanges(tmp_path)
    assert exchange.empathy == 3


def test_excel_is_read_by_its_first_sheet(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["Seeker Post", "Response Post", "score", None])
    book.active.append(["I failed.", "Rest.", 3, None])
    book.active.append([None, None, None, None])
    book.active.append(["I am ill.", None, None, None])
    book.save(tmp_path / "x.xlsx")
    bad: list[str] = []
    found = load_exchanges(tmp_path / "x.xlsx", on_bad_row=lambda row: bad.append(str(row)))
    (exchange,) = found
    assert (exchange.seeker_post, exchange.extra) == ("I failed.", {"score": 3})
    assert bad == [f"{tmp_path / 'x.xlsx'}, line 4: response_post is blank"]
    (tmp_path / "y.xlsx").write_bytes(b"PK\x03\x04damaged")
    with pytest.raises(UserError, match=r"y\.xlsx: not a readable Excel file"):
        list(load_exchanges(tmp_path / "y.xlsx"))


def test_excel_without_its_extra_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, "x.xlsx", "anything")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UserError, match=r"pip install 'empathic-rewriting\[excel\]'"):
        list(load_exchanges(tmp_path / "x.xlsx"))
