"""Target levels are labelled once, by whoever judges, and survive being killed."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from recipes.train.emprl.targets import balanced, fingerprint, key, label, read, with_targets
from rewards.identifiers import named
from rewards.identifiers.assessment import Assessment
from rewriting import MECHANISMS, Exchange, UserError
from rewriting.exchange import Label
from tests.recipes.words import Words

SORRY = Exchange("I failed.", "So sorry.")
STUDY = Exchange("I failed.", "Study.")
ROOT = Path(__file__).parents[4]


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
    monkeypatch.setattr(named, "load_identifier", lambda name="words", **_: counting)
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
    from rewriting.runtime.files.folders import locked

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


TWO_PROCESSES = """
import json, sys
from pathlib import Path
import torch.distributed as distributed
from recipes.train.emprl import targets
from rewards.identifiers import named
from rewriting.exchange import MECHANISMS, Exchange
from tests.recipes.train.emprl.test_targets import Counting

file, die_after = Path(sys.argv[1]), int(sys.argv[2])
distributed.init_process_group("gloo")
rank, judge = distributed.get_rank(), Counting()
targets.CHUNK = 4

class Dying:
    def assess(self, *posts, **options):
        if len(judge.asked) >= die_after:
            raise SystemExit(3)
        return judge.assess(*posts, **options)

named.load_identifier = lambda name="words", **_: Dying()
rows = [Exchange("I failed.", f"{'So sorry' if n % 3 else 'Study'} {n}.") for n in range(21)]
# Only the first process is given the file, as where machines share no disk.
own = file if rank == 0 else file.parent / "nowhere" / "targets.jsonl"
found = targets.with_targets(rows, "words", own)
levels = [[one.labels[m].level for m in MECHANISMS] for one in found]
(file.parent / f"{rank}.json").write_text(json.dumps([judge.asked, levels]))
distributed.destroy_process_group()
"""


def two_processes(tmp_path: Path, die_after: int = 1000) -> int:
    script = tmp_path / "run.py"
    script.write_text(TWO_PROCESSES)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", str(script)]
    arguments = [str(tmp_path / "targets.jsonl"), str(die_after)]
    return subprocess.run(
        [*command, *arguments],
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    ).returncode


def test_two_processes_share_the_labelling_and_one_writes_it(tmp_path: Path) -> None:
    assert two_processes(tmp_path) == 0
    (asked, levels), (others, same) = (
        json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)
    )
    assert levels == same == [[2 if number % 3 else 0] * 3 for number in range(21)]
    assert (len(asked), len(others)) == (11, 10)  # of rounds of 8, 8 and 5 rows
    assert len({*asked, *others}) == 21
    assert len((tmp_path / "targets.jsonl").read_text().splitlines()) == 21
    assert not (tmp_path / "nowhere").exists()


def test_two_processes_that_died_go_on_where_they_were(tmp_path: Path) -> None:
    assert two_processes(tmp_path, die_after=8) != 0  # in the third round
    assert len(read(tmp_path / "targets.jsonl")) == 16
    assert two_processes(tmp_path) == 0
    asked = [json.loads((tmp_path / f"{rank}.json").read_text())[0] for rank in range(2)]
    assert [len(one) for one in asked] == [3, 2]
    assert len(read(tmp_path / "targets.jsonl")) == 21
