"""The formats of the papers, each recognised and read."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rewriting.data import BadRow, load_exchanges
from rewriting.errors import UserError
from rewriting.exchange import Label
from tests.rewriting.data.rows import aloe_record


def test_partners_tsv_has_no_header(tmp_path: Path) -> None:
    path = tmp_path / "partner.tsv"
    path.write_text("I failed.\tTry again.\nI moved.\tHow is it?\n")
    assert [exchange.seeker_post for exchange in load_exchanges(path)] == ["I failed.", "I moved."]


def test_quotation_marks_mean_nothing_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "partner.tsv"
    path.write_text('"Be strong" they say\tok\n"never\tsure\n')
    first, second = load_exchanges(path)
    assert (first.seeker_post, second.seeker_post) == ('"Be strong" they say', '"never')


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


def test_after_a_bad_utterance_the_rest_of_its_conversation_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "valid.csv"
    head = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags\n"
    turns = [("1", "I hid."), ("2", " "), ("3", "Yes."), ("4", "Oh.")]
    path.write_text(head + "".join(f"c,{n},afraid,x,0,{text},,\n" for n, text in turns))
    bad: list[BadRow] = []
    assert list(load_exchanges(path, on_bad_row=bad.append)) == []
    assert [row.line for row in bad] == [3, 4, 5]
