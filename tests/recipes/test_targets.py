"""Target levels are labelled once, by whoever judges, and survive being killed."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from recipes.targets import balanced, fingerprint, key, label, read, with_targets
from rewards.identifiers import named
from rewards.identifiers.assessment import Assessment
from rewriting import MECHANISMS, Exchange, UserError
from rewriting.exchange import Label
from tests.recipes.words import Words

SORRY = Exchange("I failed.", "So sorry.")
STUDY = Exchange("I failed.", "Study.")


class Counting(Words):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], *, rationales: bool = True
    ) -> list[Assessment]:
        self.asked += response_posts
        return super().assess(seeker_posts, response_posts, rationales=rationales)


@pytest.fixture
def identifier(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting()
    monkeypatch.setattr(named, "load_identifier", lambda name="words": counting)
    return counting


def levels(exchange: Exchange) -> list[int]:
    return [exchange.labels[mechanism].level for mechanism in MECHANISMS]


def test_rows_are_labelled_once(identifier: Counting, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "targets.jsonl"
    found = with_targets([SORRY, STUDY, SORRY], "words", file)
    assert [levels(one) for one in found] == [[2, 2, 2], [0, 0, 0], [2, 2, 2]]
    assert identifier.asked == ["So sorry.", "Study."]
    more = Exchange("I won.", "Sorry for the others, so sorry.")
    with_targets([STUDY, more], "words", file)
    assert identifier.asked[2:] == [more.response_post]
    assert len(read(file)) == 3


def test_levels_of_the_data_stay(identifier: Counting, tmp_path: Path) -> None:
    labels = dict.fromkeys(MECHANISMS, Label(1, ("Study",)))
    given = Exchange("I failed.", "Study.", labels=labels)
    assert with_targets([given], "words", tmp_path / "targets.jsonl") == [given]
    assert identifier.asked == []


def test_of_a_row_with_some_levels_the_others_are_labelled(
    identifier: Counting, tmp_path: Path
) -> None:
    given = Exchange("I failed.", "So sorry.", labels={MECHANISMS[1]: Label(0, ("So",))})
    (found,) = with_targets([given], "words", tmp_path / "targets.jsonl")
    assert levels(found) == [2, 0, 2]
    assert found.labels[MECHANISMS[1]].rationales == ("So",)


def test_runs_that_share_a_file_take_turns(identifier: Counting, tmp_path: Path) -> None:
    from rewriting.runtime.folders import locked

    file, order = tmp_path / "targets.jsonl", []

    def second() -> None:
        label([SORRY], "words", file)
        order.append("second")

    thread = threading.Thread(target=second)
    with locked(file, on_wait=lambda: None):
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert len(read(file)) == 1


def test_a_line_that_was_cut_off_is_written_again(identifier: Counting, tmp_path: Path) -> None:
    file = tmp_path / "targets.jsonl"
    label([SORRY, STUDY], "words", file)
    whole = file.read_text()
    file.write_text(whole[:-9])
    assert len(read(file)) == 1
    label([SORRY, STUDY], "words", file)
    assert file.read_text() == whole


def test_another_identifier_has_other_targets(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "identifier.json").write_text(f'"{name}"')
    one, two = (fingerprint(str(tmp_path / name)) for name in ("one", "two"))
    assert key(SORRY, one) != key(SORRY, two)
    (tmp_path / "one" / "identifier.json").write_text('"trained anew"')
    assert fingerprint(str(tmp_path / "one")) != one


def test_an_ensemble_is_another_one_when_a_member_is_trained_anew(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "identifier.json").write_text(f'"{name}"')
    ensemble = f"ensemble:{tmp_path / 'one'},{tmp_path / 'two'}"
    before = fingerprint(ensemble)
    assert fingerprint(ensemble) == before
    (tmp_path / "two" / "identifier.json").write_text('"trained anew"')
    assert fingerprint(ensemble) != before


@pytest.mark.parametrize("line", ['{"key": "a"}', '{"key": "a", "levels": [0, 3, 1]}', "x"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "targets.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(UserError, match="line 1: no target levels"):
        read(file)
    with pytest.raises(UserError, match="is a folder"):
        read(tmp_path)


def test_rare_levels_are_drawn_more_often_and_nothing_twice() -> None:
    none, strong = (dict.fromkeys(MECHANISMS, Label(level)) for level in (0, 2))
    rows = [
        Exchange(f"post {number}", "Study.", labels=none if number % 10 else strong)
        for number in range(1000)
    ]
    drawn = balanced(rows, 200, seed=0)
    assert len({one.seeker_post for one in drawn}) == 200
    assert drawn == sorted(drawn, key=rows.index)
    # 100 of 1,000 weigh 3 × 3 × 3 = 27: 27 of the first 36 parts, and nearly all in the end
    assert sum(levels(one)[0] == 2 for one in drawn) > 85
    assert balanced(rows, 200, seed=0) == drawn != balanced(rows, 200, seed=1)
    assert balanced(rows, 2000, seed=0) == rows
