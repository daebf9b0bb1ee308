"""The votes of a study: an append-only log in SQLite that outlives a crash at any moment.

Write-ahead log with `synchronous = FULL`: what was committed is on the disk before it is
acknowledged. Votes, events and hand-overs are only ever added; triggers refuse anything else. A
vote carries the idempotency key of the page it was given on, so a rater's browser can send it
again until it hears an answer, and it counts once.

A `Store` belongs to one thread. Several processes may open the same file.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rewriting.ab.study.study import VOTES_FILE, Vote
from rewriting.errors import UserError

TABLES = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS tokens (
    hash TEXT PRIMARY KEY, rater INTEGER NOT NULL, time TEXT NOT NULL, revoked TEXT) STRICT;
CREATE TABLE IF NOT EXISTS votes (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, rater INTEGER NOT NULL, item TEXT NOT NULL,
    criterion TEXT NOT NULL, winner TEXT NOT NULL, "left" TEXT NOT NULL, "right" TEXT NOT NULL,
    seconds REAL NOT NULL, time TEXT NOT NULL, revision INTEGER NOT NULL, comment TEXT NOT NULL,
    harmful INTEGER NOT NULL, UNIQUE (rater, item, criterion, revision), UNIQUE (key, criterion)
) STRICT;
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY, rater INTEGER NOT NULL, kind TEXT NOT NULL, time TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS events_of_rater ON events (rater);
CREATE TABLE IF NOT EXISTS handovers (
    item TEXT NOT NULL, from_rater INTEGER NOT NULL, to_rater INTEGER NOT NULL,
    "left" TEXT NOT NULL, time TEXT NOT NULL, UNIQUE (item, from_rater), UNIQUE (item, to_rater)
) STRICT;
"""
APPEND_ONLY = ("votes", "events", "handovers")
VOTE_COLUMNS = (
    'rater, item, criterion, winner, "left", "right", seconds, time, revision, comment, harmful'
)


class NotYours(Exception):
    """The item does not fall to this rater, or has gone to another one."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """What a rater says about one pair: criterion → winner, and what stands beside it."""

    winners: Mapping[str, str]
    left: str
    right: str
    seconds: float = 0.0
    comment: str = ""
    harmful: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """Something a rater did other than voting: consent, declined, instructions, stopped, …"""

    rater: int
    kind: str
    time: str


@dataclass(frozen=True, slots=True)
class Handover:
    """An item that went from a rater who left to another one, who sees `left` as A."""

    item: str
    from_rater: int
    to_rater: int
    left: str


def now() -> str:
    """The server's time, in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _vote(row: Sequence[Any]) -> Vote:
    """A row of VOTE_COLUMNS. SQLite has no booleans."""
    values = [*row[:-1], bool(row[-1])]
    return Vote(*values)


class Store:
    """The votes of a study folder. `create=False` refuses a folder without votes."""

    def __init__(self, folder: str | Path, *, create: bool = True) -> None:
        self.path = Path(folder).expanduser() / VOTES_FILE
        if not create and not self.path.is_file():
            raise UserError(f"{folder}: there is no {VOTES_FILE}: nobody has voted yet.")
        try:
            # Requests are handled one at a time per store; the lock of SQLite keeps others out.
            self._database = sqlite3.connect(
                self.path, isolation_level=None, timeout=30, check_same_thread=False
            )
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            with self.transaction():
                self._make_tables()
        except sqlite3.DatabaseError as error:
            raise UserError(f"cannot open {self.path}: {error}.") from error

    def _make_tables(self) -> None:
        for statement in filter(str.strip, TABLES.split(";")):
            self._database.execute(statement)
        for table in APPEND_ONLY:
            for action in ("UPDATE", "DELETE"):
                self._database.execute(
                    f"CREATE TRIGGER IF NOT EXISTS {table}_no_{action} BEFORE {action} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END"
                )
        self._database.execute(
            "INSERT OR IGNORE INTO settings VALUES ('secret', ?)", (secrets.token_hex(32),)
        )

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the block or nothing of it; inside another transaction, a part of that one."""
        nested = self._database.in_transaction
        begin, commit, undo = (
            ("SAVEPOINT part", "RELEASE part", "ROLLBACK TO part")
            if nested
            else ("BEGIN IMMEDIATE", "COMMIT", "ROLLBACK")
        )
        self._database.execute(begin)
        try:
            yield
            self._database.execute(commit)
        except BaseException:
            if self._database.in_transaction:  # a full disk may have undone it already
                self._database.execute(undo)
                if nested:
                    self._database.execute(commit)
            raise

    def setting(self, name: str) -> str | None:
        row = self._database.execute("SELECT value FROM settings WHERE name = ?", (name,))
        return next((value for (value,) in row), None)

    def changes(self) -> int:
        """A number that is another one after every change through another connection."""
        return int(self._database.execute("PRAGMA data_version").fetchone()[0])

    # Votes

    def vote(self, key: str, rater: int, item: str, ballot: Ballot) -> bool:
        """Append a ballot. False where this key has been here: the ballot is in the log already."""
        with self.transaction():
            if self.has_key(key):
                return False
            if self.handed_over(rater, item):
                raise NotYours(item)
            revision = self._revision(rater, item)
            time = now()
            self.append(
                [
                    Vote(
                        rater, item, criterion, winner, ballot.left, ballot.right, ballot.seconds,
                        time, revision, ballot.comment, ballot.harmful,
                    )
                    for criterion, winner in ballot.winners.items()
                ],
                key=key,
            )  # fmt: skip
        return True

    def append(self, votes: Sequence[Vote], *, key: str) -> None:
        """Append votes as they stand, under one idempotency key; for `vote` and for imports."""
        self._database.executemany(
            f"INSERT INTO votes (key, {VOTE_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
            [
                (
                    key, vote.rater, vote.item, vote.criterion, vote.winner, vote.left, vote.right,
                    vote.seconds, vote.time, vote.revision, vote.comment, int(vote.harmful),
                )
                for vote in votes
            ],
        )  # fmt: skip

    def has_key(self, key: str) -> bool:
        found = self._database.execute("SELECT 1 FROM votes WHERE key = ? LIMIT 1", (key,))
        return found.fetchone() is not None

    def _revision(self, rater: int, item: str) -> int:
        """The number of the next revision of a rater's vote on an item."""
        query = "SELECT COALESCE(MAX(revision), -1) + 1 FROM votes WHERE rater = ? AND item = ?"
        return int(self._database.execute(query, (rater, item)).fetchone()[0])

    def votes(
        self, *, all_revisions: bool = False, rater: int | None = None, item: str | None = None
    ) -> list[Vote]:
        """The votes in the order they came: the last revision of each, or every one."""
        conditions, values = ["1"], []
        for column, value in (("rater", rater), ("item", item)):
            if value is not None:
                conditions.append(f"{column} = ?")
                values.append(value)
        if not all_revisions:
            conditions.append(
                "revision = (SELECT MAX(revision) FROM votes AS later WHERE later.rater = "
                "votes.rater AND later.item = votes.item)"
            )
        query = f"SELECT {VOTE_COLUMNS} FROM votes WHERE {' AND '.join(conditions)} ORDER BY id"
        return [_vote(row) for row in self._database.execute(query, values)]

    def votes_with_keys(self) -> list[tuple[str, Vote]]:
        """Every revision with the idempotency key it came under."""
        query = f"SELECT key, {VOTE_COLUMNS} FROM votes ORDER BY id"
        return [(key, _vote(row)) for key, *row in self._database.execute(query)]

    def items_voted_on(self, rater: int) -> set[str]:
        query = "SELECT DISTINCT item FROM votes WHERE rater = ?"
        return {item for (item,) in self._database.execute(query, (rater,))}

    # Events and hand-overs

    def add_event(self, rater: int, kind: str) -> None:
        self._database.execute(
            "INSERT INTO events (rater, kind, time) VALUES (?, ?, ?)", (rater, kind, now())
        )

    def events(self, rater: int | None = None) -> list[Event]:
        where = "" if rater is None else "WHERE rater = ?"
        query = f"SELECT rater, kind, time FROM events {where} ORDER BY id"
        return [
            Event(*row) for row in self._database.execute(query, () if rater is None else (rater,))
        ]

    def last_seen(self, rater: int) -> str | None:
        """When a rater was given a link, did something or voted, whichever came last."""
        tables = ("tokens", "events", "votes")
        query = " UNION ALL ".join(f"SELECT time FROM {table} WHERE rater = ?1" for table in tables)
        query = f"SELECT MAX(time) FROM ({query})"
        last = self._database.execute(query, (rater,)).fetchone()[0]
        return None if last is None else str(last)

    def hand_over(self, handover: Handover) -> None:
        self._database.execute(
            'INSERT INTO handovers (item, from_rater, to_rater, "left", time) VALUES (?,?,?,?,?)',
            (handover.item, handover.from_rater, handover.to_rater, handover.left, now()),
        )

    def handovers(self) -> list[Handover]:
        query = 'SELECT item, from_rater, to_rater, "left" FROM handovers ORDER BY rowid'
        return [Handover(*row) for row in self._database.execute(query)]

    def handed_over(self, rater: int, item: str) -> bool:
        query = "SELECT 1 FROM handovers WHERE item = ? AND from_rater = ?"
        return self._database.execute(query, (item, rater)).fetchone() is not None

    # Tokens: only their hashes are kept

    def add_token(self, token_hash: str, rater: int) -> None:
        self._database.execute(
            "INSERT INTO tokens VALUES (?, ?, ?, NULL)", (token_hash, rater, now())
        )

    def rater_of(self, token_hash: str) -> int | None:
        query = "SELECT rater FROM tokens WHERE hash = ? AND revoked IS NULL"
        row = self._database.execute(query, (token_hash,)).fetchone()
        return None if row is None else int(row[0])

    def revoke(self, rater: int) -> bool:
        """Make all links of a rater invalid. False where there was none."""
        update = "UPDATE tokens SET revoked = ? WHERE rater = ? AND revoked IS NULL"
        return self._database.execute(update, (now(), rater)).rowcount > 0

    def linked_raters(self) -> dict[int, bool]:
        """Raters who were ever given a link → whether one of their links is valid."""
        query = "SELECT rater, SUM(revoked IS NULL) > 0 FROM tokens GROUP BY rater ORDER BY rater"
        return {int(rater): bool(valid) for rater, valid in self._database.execute(query)}

    # Whole files

    def backup(self, target: Path) -> int:
        """A consistent copy, taken while others read and write. Returns its number of votes."""
        copy = sqlite3.connect(target)
        try:
            with copy:
                self._database.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
            (found,) = copy.execute("PRAGMA integrity_check").fetchone()
            if found != "ok":
                raise UserError(f"the copy {target} is damaged: {found}.")
            return int(copy.execute("SELECT COUNT(*) FROM votes").fetchone()[0])
        finally:
            copy.close()

    def problems(self) -> list[str]:
        """What SQLite's integrity check finds; nothing in a sound file."""
        found = [text for (text,) in self._database.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found
