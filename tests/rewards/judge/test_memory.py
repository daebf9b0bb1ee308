"""Every question is asked once, in this run and the next."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rewards.judge.memory import DiskCache, Remembered
from rewards.judge.question import Numbers, Question
from rewriting.errors import UserError


class Counting:
    """Answers backwards, so that order matters, and fails at a text that says so."""

    name = "counting"

    def __init__(self, identity: str = "counting") -> None:
        self.identity = identity
        self.asked: list[str] = []

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Numbers]]:
        for place in reversed(range(len(questions))):
            text = questions[place].prompt
            if text == "fail":
                raise UserError("it failed")
            self.asked.append(text)
            yield place, (len(text) / 10, 1 / 3)


def question(text: str) -> Question:
    return Question("{response}", (("response", text),), ("A", "B"))


def questions(*texts: str) -> list[Question]:
    return [question(text) for text in texts]


def test_in_memory() -> None:
    judge = Counting()
    ask = Remembered(judge)
    assert ask(questions("a", "bbb", "a")) == [(0.1, 1 / 3), (0.3, 1 / 3), (0.1, 1 / 3)]
    assert ask(questions("bbb", "cc")) == [(0.3, 1 / 3), (0.2, 1 / 3)]
    assert sorted(judge.asked) == ["a", "bbb", "cc"]
    assert ask.asked == 3
    assert ask([]) == []


@pytest.mark.parametrize(("name", "file"), [("a.sqlite", "a.sqlite"), ("b", "b/answers.sqlite")])
def test_on_disk(tmp_path: Path, name: str, file: str) -> None:
    cache = tmp_path / "new" / name
    first = Remembered(Counting(), DiskCache(cache))(questions("a", "bbb"))
    judge = Counting()
    again = Remembered(judge, DiskCache(cache))
    assert again(questions("bbb", "cc", "a")) == [first[1], (0.2, 1 / 3), first[0]]
    assert judge.asked == ["cc"]
    other = Counting("another model")
    Remembered(other, DiskCache(cache))(questions("a"))
    assert other.asked == ["a"]
    assert (tmp_path / "new" / file).is_file()


def test_no_text_is_on_disk(tmp_path: Path) -> None:
    Remembered(Counting(), DiskCache(tmp_path))(questions("a secret post"))
    assert b"secret" not in (tmp_path / "answers.sqlite").read_bytes()


def test_what_was_paid_for_is_kept_when_a_later_question_fails(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="it failed"):
        Remembered(Counting(), DiskCache(tmp_path))(questions("a", "fail", "cc"))
    judge = Counting()
    Remembered(judge, DiskCache(tmp_path))(questions("a", "cc"))
    assert judge.asked == ["a"]


def test_many_keys_are_looked_up_in_parts(tmp_path: Path) -> None:
    many = questions(*(f"text {number}" for number in range(1200)))
    cache = DiskCache(tmp_path)
    with sqlite3.connect(cache.path) as database:
        rows = [(one.key("counting"), "[0.5, 0.25]") for one in many]
        database.executemany("INSERT INTO answers VALUES (?, ?)", rows)
    database.close()
    judge = Counting()
    assert Remembered(judge, DiskCache(tmp_path))(many) == [(0.5, 0.25)] * 1200
    assert judge.asked == []


def test_a_file_that_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are my notes, not a database")
    with pytest.raises(UserError, match=r"notes.db cannot be used: .*Name another file or folder"):
        DiskCache(tmp_path / "notes.db")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be made"):
        DiskCache(tmp_path / "file" / "folder")
