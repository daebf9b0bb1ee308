"""Exports: harmless cells, no personal data, preferences that TRL can read."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from rewriting.ab.results.export import (
    check_criterion,
    csv_text,
    harmless,
    json_lines,
    preference_rows,
    vote_rows,
    write_text,
)
from rewriting.errors import UserError
from tests.rewriting.ab.made_study import cast, made_study

STUDY = made_study(exchanges=4, raters=3, seeker_post="Write to me@example.org or @somebody_1.")
VOTES = cast(STUDY, lambda rater, place, criterion: "ours" if place < 2 else "tie")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "\u00a0@", "＝"])
def test_cells_that_start_formulas_are_neutralised(start: str) -> None:
    text = csv_text([{"comment": f"{start}cmd|' /C calc'!A0", "n": -1.5}])
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["comment"].startswith("'")
    assert row["n"] == "-1.5"


def test_other_cells_stay_as_they_are() -> None:
    for value in ("a = b", "", "it's", 'He said "no", twice\nand left', 3, -2.5, True, None):
        assert harmless(value) == value


def test_votes_are_scrubbed_unless_kept() -> None:
    (row, *_) = vote_rows(STUDY, VOTES)
    assert row["seeker_post"] == "Write to [mail] or [handle]. (0)"
    (row, *_) = vote_rows(STUDY, VOTES, scrub=False)
    assert row["seeker_post"] == "Write to me@example.org or @somebody_1. (0)"


def test_ids_are_scrubbed_too() -> None:
    item = replace(STUDY.items["item00001"], exchange_id="Write to me@example.org.")
    study = replace(STUDY, items={**STUDY.items, item.id: item})
    rows = vote_rows(study, [vote for vote in VOTES if vote.item == item.id])
    assert {row["exchange_id"] for row in rows} == {"Write to [mail]."}


def test_older_revisions_exclude_nobody() -> None:
    """Rater 1 failed the checks at first, and put that right within a second."""
    checks = [v for v in VOTES if v.rater == 1 and v.item.startswith("check")]
    wrong = [replace(vote, winner="worse") for vote in checks]
    better = [replace(vote, seconds=1.0, revision=1) for vote in checks]
    votes = [*(vote for vote in VOTES if vote not in checks), *wrong, *better]
    rows = list(vote_rows(STUDY, votes, all_revisions=True))
    assert len(rows) == len(VOTES) + len(checks)
    assert not any(row["excluded"] for row in rows)
    assert len(list(vote_rows(STUDY, votes))) == len(VOTES)


def test_votes_say_what_the_rater_saw() -> None:
    hasty = [
        replace(v, seconds=0.5, comment="+44 20 7946 0000") if v.rater == 2 else v for v in VOTES
    ]
    rows = list(vote_rows(STUDY, hasty))
    assert len(rows) == len(VOTES)
    for row, vote in zip(rows, hasty, strict=True):
        assert row["left_reply"] == STUDY.items[vote.item].replies[vote.left]
        assert row["excluded"] == (vote.rater == 2)
        assert row["comment"] == ("[phone]" if vote.rater == 2 else "")
    assert {row["kind"] for row in rows} == {"item", "repeat", "attention", "practice"}


def test_preferences_are_majorities() -> None:
    votes = [
        replace(vote, winner="theirs") if vote.item == "item00101" and vote.rater > 1 else vote
        for vote in VOTES
    ]
    rows = list(preference_rows(STUDY, votes, "empathic"))
    assert [(row["item"], row["chosen"], row["rejected"]) for row in rows] == [
        ("item00001", "Reply 0 α.", "Reply 0 β."),
        ("item00101", "Reply 1 β.", "Reply 1 α."),
    ]
    assert rows[1]["prompt"] == "Write to [mail] or [handle]. (1)"
    assert (rows[1]["votes_chosen"], rows[1]["votes_rejected"], rows[1]["votes_tie"]) == (2, 1, 0)
    single = list(preference_rows(STUDY, votes, "empathic", majority=False))
    assert len(single) == 6


def test_flagged_pairs_and_excluded_raters_train_nothing() -> None:
    flagged = [replace(vote, harmful=vote.item == "item00001") for vote in VOTES]
    assert [row["item"] for row in preference_rows(STUDY, flagged, "empathic")] == ["item00101"]
    again = [replace(vote, harmful=vote.item == "repeat-item00001") for vote in VOTES]
    assert [row["item"] for row in preference_rows(STUDY, again, "empathic")] == ["item00101"]
    hasty = [replace(vote, seconds=0.1) for vote in VOTES]
    assert list(preference_rows(STUDY, hasty, "empathic")) == []


def test_trl_reads_both_forms(tmp_path: Path) -> None:
    """What TRL's trainers ask of a preference data set, asked of its own functions."""
    from trl.data_utils import is_conversational

    item = STUDY.items["item00001"]
    items = STUDY.items | {"item00001": replace(item, history=("Hello.", "Hi, what is it?"))}
    study = replace(STUDY, items=items)
    plain = next(preference_rows(study, VOTES, "empathic"))
    assert plain["prompt"] == "Hello.\n\nHi, what is it?\n\nWrite to [mail] or [handle]. (0)"
    assert not is_conversational(plain)
    messages = next(preference_rows(study, VOTES, "empathic", conversational=True))
    assert is_conversational(messages)
    assert [one["role"] for one in messages["prompt"]] == ["user", "assistant", "user"]
    assert messages["chosen"] == [{"role": "assistant", "content": "Reply 0 α."}]
    path = tmp_path / "preferences.jsonl"
    write_text(path, json_lines([plain]))
    assert json.loads(path.read_text(encoding="utf-8")) == plain


def test_a_criterion_must_be_one_of_the_study() -> None:
    assert check_criterion(STUDY, None) == "empathic"
    with pytest.raises(UserError, match="It has: empathic, fluent"):
        check_criterion(STUDY, "warm")


def test_lone_surrogates_do_not_stop_an_export(tmp_path: Path) -> None:
    write_text(tmp_path / "x.csv", "a\ud800b")
    assert (tmp_path / "x.csv").read_text() == "a?b"
