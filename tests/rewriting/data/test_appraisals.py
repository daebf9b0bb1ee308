"""ALOE's records become appraised exchanges, or say what is wrong with them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewriting.data.appraisals import Span, load_appraisals, sentence_bounds
from rewriting.errors import UserError

TARGET, OBSERVER = "I failed. My fault.", "Not your fault! Rest."
FULL = f"target:\n\n{TARGET}\n\nobserver:\n\n{OBSERVER}"
RECORD: dict[str, Any] = {
    "target_text": TARGET,
    "observer_text": OBSERVER,
    "full_text": FULL,
    # "target:\n\n" is 9 long; the observer starts at 9 + 19 + 13 = 41.
    "spans": [
        [57, 62, "Advice"],
        [41, 56, "Self-Other Agency"],
        [9, 18, "Objective Experience"],
        [19, 28, "Self-Other Agency"],
    ],
    "alignments": [[[19, 28], [41, 56]]],
}


def test_offsets_become_those_of_the_two_texts(jsonl: Callable[..., Path]) -> None:
    (exchange,) = load_appraisals(jsonl([RECORD]))
    assert exchange.target_spans == (
        Span(0, 9, "Objective Experience"),
        Span(10, 19, "Self-Other Agency"),
    )
    assert [exchange.words("observer", place) for place in (0, 1)] == ["Not your fault!", "Rest."]
    assert exchange.alignments == {(1, 0)}
    assert exchange.split in ("train", "dev", "test")


def test_a_split_of_its_own_is_kept_and_posts_stay_together(jsonl: Callable[..., Path]) -> None:
    rows = [RECORD | {"split": "dev"}, RECORD, RECORD | {"seeker_id": "ann"}]
    first, second, third = load_appraisals(jsonl(rows))
    assert first.split == "dev"
    (again,) = load_appraisals(jsonl([RECORD | {"id": "x"}], "more.jsonl"))
    assert again.split == second.split
    assert third.seeker_id == "ann"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spans": [[9, 18, "Joy"]]}, "there is no appraisal 'Joy'"),
        ({"spans": [[30, 40, "Trope"]]}, "is not inside a text"),
        ({"spans": [[50, 99, "Trope"]]}, "is not inside a text"),
        ({"spans": [[9.0, 18, "Trope"]]}, "is not of whole numbers"),
        ({"alignments": [[[9, 18], [42, 56]]]}, "names no span"),
        ({"alignments": [[[9, 18]]]}, "is not a pair of spans"),
        ({"alignments": [[]]}, "is not a pair of spans"),
        ({"alignments": ["ab"]}, "is not a pair of spans"),
        ({"full_text": "target: oh"}, "full_text is not"),
        ({"split": "tomorrow"}, "split is one of"),
    ],
)
def test_a_bad_record_is_named(
    change: dict[str, Any], reason: str, jsonl: Callable[..., Path]
) -> None:
    path = jsonl([RECORD, RECORD | change])
    with pytest.raises(UserError, match=rf"rows\.jsonl, line 2: .*{reason}"):
        list(load_appraisals(path))
    bad: list[Any] = []
    assert len(list(load_appraisals(path, on_bad_row=bad.append))) == 1
    assert bad[0].line == 2


def test_a_missing_column_is_named(jsonl: Callable[..., Path]) -> None:
    row = {key: value for key, value in RECORD.items() if key != "spans"}
    with pytest.raises(UserError, match="it lacks 'spans'"):
        list(load_appraisals(jsonl([row])))


def test_an_unknown_part_of_the_sample() -> None:
    with pytest.raises(UserError, match="sample has the splits"):
        list(load_appraisals("sample:all"))


def test_bounds_are_where_the_sentences_are() -> None:
    text = "  It rained. \n\nWhy?  "
    assert [text[a:b] for a, b in sentence_bounds(text)] == ["It rained.", "Why?"]
    assert sentence_bounds(" \n ") == []
