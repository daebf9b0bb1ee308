"""The log of votes: append-only, idempotent, sound while it is copied."""

import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from rewriting.ab.study.store import Ballot, Handover, NotYours, Store
from rewriting.errors import UserError

BALLOT = Ballot({"warm": "x", "fluent": "tie"}, "x", "y", 4.5, "why not", True)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_a_vote_comes_back_as_it_was_given(store: Store) -> None:
    assert store.vote("key", 3, "item", BALLOT)
    warm, fluent = store.votes()
    assert (warm.rater, warm.item, warm.criterion, warm.winner) == (3, "item", "warm", "x")
    assert (fluent.criterion, fluent.winner, fluent.left, fluent.right) == (
        "fluent",
        "tie",
        "x",
        "y",
    )
    assert (warm.seconds, warm.comment, warm.harmful, warm.revision) == (4.5, "why not", True, 0)
    assert warm.time == fluent.time
    assert warm.time.endswith("+00:00")


def test_the_same_key_counts_once(store: Store) -> None:
    assert store.vote("key", 1, "item", BALLOT)
    assert not store.vote("key", 1, "item", BALLOT)
    assert len(store.votes(all_revisions=True)) == 2


def test_revisions_are_kept_and_the_last_one_counts(store: Store) -> None:
    store.vote("one", 1, "item", BALLOT)
    store.vote("two", 1, "item", Ballot({"warm": "y", "fluent": "y"}, "x", "y"))
    store.vote("three", 2, "item", BALLOT)
    assert [(v.rater, v.winner, v.revision) for v in store.votes()] == [
        (1, "y", 1), (1, "y", 1), (2, "x", 0), (2, "tie", 0),
    ]  # fmt: skip
    assert len(store.votes(all_revisions=True)) == 6
    assert len(store.votes(rater=2, item="item")) == 2
    assert store.votes(rater=2, item="other") == []


@pytest.mark.parametrize("table", ["votes", "events", "handovers"])
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "UPDATE {} SET time = ''"])
def test_the_log_is_append_only(store: Store, table: str, statement: str) -> None:
    store.vote("key", 1, "item", BALLOT)
    store.add_event(1, "consent")
    store.hand_over(Handover("item", 1, 2, "x"))
    raw = sqlite3.connect(store.path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement.format(table))
    raw.close()


def test_it_waits_for_the_disk(store: Store) -> None:
    assert store._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._database.execute("PRAGMA synchronous").fetchone() == (2,)


def test_an_item_that_went_to_somebody_else_takes_no_vote(store: Store) -> None:
    store.hand_over(Handover("item", 1, 2, "x"))
    with pytest.raises(NotYours):
        store.vote("key", 1, "item", BALLOT)
    assert store.vote("key", 2, "item", BALLOT)


def test_a_part_of_a_transaction_can_fail_alone(store: Store) -> None:
    with store.transaction():
        store.add_event(1, "kept")
        with suppress(NotYours), store.transaction():
            store.add_event(1, "undone")
            raise NotYours
    assert [event.kind for event in store.events()] == ["kept"]


def test_a_backup_is_whole_while_votes_come_in(tmp_path: Path) -> None:
    writer = Store(tmp_path)
    started, done = threading.Event(), threading.Event()

    def vote() -> None:
        number = 0
        while not done.is_set():
            writer.vote(f"key {number}", 1, f"item {number}", BALLOT)
            number += 1
            if number == 10:
                started.set()

    thread = threading.Thread(target=vote)
    thread.start()
    started.wait()
    with Store(tmp_path) as other:
        counted = other.backup(tmp_path / "copy.sqlite")
    done.set()
    thread.join()
    raw = sqlite3.connect(tmp_path / "copy.sqlite")
    per_key = raw.execute("SELECT COUNT(*) FROM votes GROUP BY key").fetchall()
    raw.close()
    assert counted == sum(count for (count,) in per_key) >= 20
    assert set(per_key) == {(2,)}, "half a ballot in the copy"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("copy")] == ["copy.sqlite"]
    writer.close()


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "votes.sqlite").write_text("hello " * 999)
    with pytest.raises(UserError, match="cannot open"):
        Store(tmp_path)
    with pytest.raises(UserError, match="nobody has voted yet"):
        Store(tmp_path / "elsewhere", create=False)


def test_links_are_kept_as_hashes_and_end_when_revoked(store: Store) -> None:
    store.add_token("hash", 4)
    assert store.rater_of("hash") == 4
    assert store.linked_raters() == {4: True}
    assert store.revoke(4)
    assert not store.revoke(4)
    assert store.rater_of("hash") is None
    assert store.linked_raters() == {4: False}


def test_a_commit_that_fails_leaves_no_transaction_open(store: Store) -> None:
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("PRAGMA foreign_keys = ON")
    store._database.execute("PRAGMA foreign_keys = ON")
    other.execute("CREATE TABLE one (id INTEGER PRIMARY KEY)")
    other.execute("CREATE TABLE two (one INTEGER REFERENCES one DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(sqlite3.IntegrityError), store.transaction():  # found out at the COMMIT
        store._database.execute("INSERT INTO two VALUES (1)")
    assert not store._database.in_transaction
    assert store.vote("key", 1, "item", BALLOT)
