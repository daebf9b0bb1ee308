"""The statistics of a study on a table of votes: the same figures as from the study itself."""

import csv
import io
from dataclasses import replace
from typing import Any

import pytest

from rewriting import UserError
from rewriting.ab.results.analysis import analyse
from rewriting.ab.results.export import csv_text, vote_rows
from rewriting.ab.results.table import analyse_votes
from tests.rewriting.ab.made_study import cast, made_study


def vote(rater: Any = "ann", winner: str = "ours", item: str = "1", **more: Any) -> dict[str, Any]:
    return {
        "rater": rater,
        "item": item,
        "winner": winner,
        "left": "ours",
        "right": "theirs",
    } | more


VOTES = [
    vote(rater, "theirs" if item == rater else "tie" if item == 5 else "ours", str(item))
    for rater in range(4)
    for item in range(6)
]
"""Four raters, six items: item 5 is a tie for all; rater n finds theirs better on item n."""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return analyse_votes(VOTES)


def test_wins_are_counted_by_hand(found: dict[str, Any]) -> None:
    (row,) = found["comparisons"]
    assert (found["raters"], found["items"], found["votes"]) == (4, 6, 24)
    assert (row["first"], row["second"], row["criterion"]) == ("ours", "theirs", "preferred")
    assert (row["wins"], row["ties"], row["losses"]) == (16, 4, 4)
    assert row["ties_left_out"]["win_rate"] == pytest.approx(16 / 20)
    assert row["ties_split"]["win_rate"] == pytest.approx(18 / 24)
    assert row["better"] == "ours"


def test_a_data_frame_says_the_same(found: dict[str, Any]) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [row | {"excluded": False, "criterion": None} for row in VOTES]
    rows += [row | {"rater": 9, "excluded": True} for row in VOTES[:6]]
    assert analyse_votes(pandas.DataFrame(rows)) == found


def test_the_order_of_systems_is_the_askers() -> None:
    (row,) = analyse_votes(VOTES, systems=("theirs", "ours"))["comparisons"]
    assert (row["first"], row["wins"], row["losses"]) == ("theirs", 4, 16)


def test_an_exported_table_gives_the_figures_of_the_report() -> None:
    study = made_study(systems=("a", "b", "c"), exchanges=6, raters=4)
    ties = cast(study, lambda rater, place, criterion: "tie")
    votes = [v if v.rater == 1 else replace(v, winner=min(v.left, v.right)) for v in ties]
    report = analyse(study, votes)
    rows = list(csv.DictReader(io.StringIO(csv_text(vote_rows(study, votes)))))
    found = analyse_votes(rows, systems=study.systems, seed=study.seed)
    assert found["comparisons"] == report["main"]["comparisons"]
    assert found["consistency"] == report["main"]["consistency"]
    assert found["bradley_terry"] == report["main"]["bradley_terry"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the table of votes is empty"),
        ([vote(), vote(rater="")], "vote 2 has no rater; what is there: rater, item"),
        ([{"rater": 1}], "vote 1 has no item"),
        ([vote(winner="nobody")], "vote 1: the winner is 'nobody'; it is 'ours' or 'theirs'"),
        ([vote(right="ours")], "vote 1 compares 'ours' with itself"),
        ([vote(), vote()], "voted twice on item '1', criterion 'preferred'"),
        ([vote(excluded="True")], "no vote that counts"),
        ([vote(kind="attention")], "no vote that counts"),
    ],
)
def test_mistakes_are_named(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        analyse_votes(rows)


def test_a_revision_replaces_the_vote_before() -> None:
    rows = [*VOTES, vote(0, "ours", "0", revision=1)]
    assert analyse_votes(rows)["comparisons"][0]["losses"] == 3
    with pytest.raises(UserError, match="votes are on 'theirs', which is not among the systems"):
        analyse_votes(VOTES, systems=("ours", "others"))
