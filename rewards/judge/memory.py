"""Every question is asked once: answers are kept in memory, and on disk where that is wanted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from rewards.judge.question import Judge, Numbers, Question
from rewriting.errors import UserError
from rewriting.runtime.cache import ScoreCache

FILE: Final = "answers.sqlite"  # in a folder that a user names
SUFFIXES: Final = (".sqlite", ".sqlite3", ".db")
WAIT: Final = 60.0  # seconds for another process that writes
ASKED_AT_ONCE: Final = 500  # SQLite takes 999 parameters at the least
TABLE: Final = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, numbers TEXT NOT NULL)"


class DiskCache:
    """Answers in one SQLite file, which several processes may share.

    path: a file that ends in .sqlite, .sqlite3 or .db, or a folder for one. The file holds digests
    and numbers; no text of a post is in it.
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path).expanduser()
        self.path = path if path.suffix in SUFFIXES else path / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"the cache {path} cannot be made: {error.strerror}.") from error
        with self._open() as database:
            database.execute(TABLE)

    def get(self, keys: Sequence[str]) -> dict[str, Numbers]:
        """The answers that are known, by key."""
        found: dict[str, Numbers] = {}
        with self._open() as database:
            for start in range(0, len(keys), ASKED_AT_ONCE):
                some = keys[start : start + ASKED_AT_ONCE]
                marks = ", ".join("?" * len(some))
                query = f"SELECT key, numbers FROM answers WHERE key IN ({marks})"
                rows = database.execute(query, list(some))
                found |= {key: tuple(json.loads(numbers)) for key, numbers in rows}
        return found

    def put(self, key: str, numbers: Numbers) -> None:
        with self._open() as database:
            database.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, json.dumps(numbers))
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection for one transaction: threads and forked processes cannot share one."""
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT)) as database, database:
                yield database
        except sqlite3.Error as error:
            raise UserError(
                f"the cache {self.path} cannot be used: {error}. Name another file or folder."
            ) from error


class Remembered:
    """A judge that is asked each question once; called with questions, it gives their numbers.

    disk: where answers are kept on disk; None keeps them in memory only. Each is written as soon as
    it is known, so that an evaluation that stops half-way has not paid for nothing.
    asked: how many questions the judge itself had to answer.
    """

    def __init__(self, judge: Judge, disk: DiskCache | None = None) -> None:
        self.judge = judge
        self.disk = disk
        self.asked = 0
        self._known = ScoreCache(self._looked_up)

    def __call__(self, questions: Sequence[Question]) -> list[Numbers]:
        return self._known(questions)

    def _looked_up(self, questions: list[Question]) -> list[Numbers]:
        keys = {one: one.key(self.judge.identity) for one in questions}
        on_disk = self.disk.get(list(keys.values())) if self.disk else {}
        found = {one: on_disk[key] for one, key in keys.items() if key in on_disk}
        new = [one for one in questions if one not in found]
        for place, numbers in self.judge.answers(new) if new else ():
            self.asked += 1
            found[new[place]] = numbers
            if self.disk:
                self.disk.put(keys[new[place]], numbers)
        return [found[one] for one in questions]
