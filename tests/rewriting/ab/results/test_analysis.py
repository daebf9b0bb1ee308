"""What goes into which figure, counted by hand on studies whose votes follow from a rule."""

from dataclasses import replace

import pytest

from rewriting.ab.results.analysis import analyse
from rewriting.statistics.shares import wilson
from tests.rewriting.ab.made_study import cast, made_study


def ours_in_three_of_four(rater: int, place: int, criterion: str) -> str:
    """Eight exchanges: two ties, and of the other six, one lost on empathic and all on fluent."""
    if place in (6, 7):
        return "tie"
    if criterion == "fluent":
        return "theirs"
    return "theirs" if place == rater else "ours"


def test_wins_are_counted_per_criterion() -> None:
    study = made_study(exchanges=8, raters=4)
    found = analyse(study, cast(study, ours_in_three_of_four))
    empathic, fluent = found["main"]["comparisons"]
    assert (empathic["wins"], empathic["ties"], empathic["losses"]) == (20, 8, 4)
    assert (fluent["wins"], fluent["ties"], fluent["losses"]) == (0, 8, 24)
    assert empathic["ties_left_out"]["win_rate"] == pytest.approx(20 / 24)
    assert empathic["ties_split"]["win_rate"] == pytest.approx(24 / 32)
    assert empathic["ties_left_out"]["wilson"] == wilson(20, 24)
    assert (empathic["better"], fluent["better"]) == ("ours", "theirs")
    assert found["main"]["raters"] == 4
    assert found["main"]["items"] == 8
    assert found["main"]["votes"] == 64  # practice, checks and repeats do not count


def test_holm_is_over_all_rows() -> None:
    study = made_study(systems=("a", "b", "c"), exchanges=6)
    found = analyse(study, cast(study, lambda rater, place, criterion: "tie"))
    rows = found["main"]["comparisons"]
    assert [(row["first"], row["second"]) for row in rows[::2]] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    for row in rows:
        assert row["ties_left_out"]["binomial_p"] is None
        assert row["ties_split"]["binomial_p_holm"] == 1
        assert row["better"] is None


def test_raters_under_the_rule_are_left_out_and_shown() -> None:
    study = made_study(raters=4)
    votes = cast(study, lambda rater, place, criterion: "theirs" if rater == 4 else "ours")
    hasty = [replace(vote, seconds=1.0) if vote.rater == 4 else vote for vote in votes]
    found = analyse(study, hasty)
    assert found["excluded"] == [4]
    assert found["main"]["comparisons"][0]["losses"] == 0
    assert found["all_raters"]["comparisons"][0]["losses"] == 8
    assert found["raters"][3]["excluded_because"] == ["median 1.0 s a pair, below 3 s"]


def test_whoever_corrects_an_answer_quickly_is_not_hasty() -> None:
    study = made_study(raters=4)
    votes = cast(study, lambda rater, place, criterion: "ours")
    quick = [replace(vote, winner="theirs", seconds=1.0, revision=1) for vote in votes]
    plain = [vote for vote in quick if vote.rater == 4 and study.items[vote.item].kind == "item"]
    found = analyse(study, [*votes, *plain])
    assert found["excluded"] == []
    assert found["raters"][3]["median_seconds"] == 11.0
    assert found["main"]["comparisons"][0]["losses"] == 8
    assert found["main"]["comparisons"][0]["wins"] == 24


def test_an_attention_check_is_passed_when_every_criterion_is() -> None:
    study = made_study(raters=3)
    votes = [
        replace(vote, winner="worse")
        if vote.rater == 2 and vote.item == "check0" and vote.criterion == "fluent"
        else vote
        for vote in cast(study, lambda rater, place, criterion: "ours")
    ]
    found = analyse(study, votes)
    assert [row["attention"] for row in found["raters"]] == [1.0, 0.5, 1.0]
    assert found["excluded"] == [2]


def test_position_and_consistency() -> None:
    study = made_study(exchanges=6, raters=2, repeats=2)
    votes = []
    for vote in cast(study, lambda rater, place, criterion: "ours"):
        kind = study.items[vote.item].kind
        if kind == "item":  # always the left one
            vote = replace(vote, winner=vote.left)
        elif kind == "repeat":
            vote = replace(vote, winner="ours")
        votes.append(vote)
    found = analyse(study, votes)["main"]
    assert found["position"]["empathic"]["share"] == 1
    assert found["position"]["empathic"]["votes"] == 12
    assert found["position"]["empathic"]["binomial_p"] == pytest.approx(2 / 2**12)
    # Of the first two items, each rater saw ours on the left once, so said "ours" once.
    assert found["consistency"]["empathic"] == {
        "share": 0.5,
        "interval": wilson(2, 4),
        "votes": 4,
    }
    assert found["comparisons"][0]["ties_left_out"]["win_rate"] == 0.5


def test_three_systems_have_strengths() -> None:
    study = made_study(systems=("a", "b", "c"), exchanges=6, raters=3)
    order = {"a": 0, "b": 1, "c": 2}
    votes = [
        replace(vote, winner=min(vote.left, vote.right, key=order.__getitem__))
        if vote.left in order and "item000" not in vote.item
        else vote
        for vote in cast(study, lambda rater, place, criterion: "tie")
    ]
    strengths = analyse(study, votes)["main"]["bradley_terry"]["empathic"]
    assert strengths["a"]["strength"] > strengths["b"]["strength"] > strengths["c"]["strength"]
    unfinished = [vote for vote in votes if "c" not in (vote.left, vote.right)]
    assert analyse(study, unfinished)["main"]["bradley_terry"]["empathic"] is None


def test_flags_are_counted_by_pair() -> None:
    study = made_study(raters=3)
    votes = [
        replace(vote, harmful=vote.item == "item00201" and vote.rater < 3)
        for vote in cast(study, lambda rater, place, criterion: "ours")
    ]
    found = analyse(study, votes)
    assert found["harmful"] == [
        {
            "item": "item00201",
            "kind": "item",
            "systems": ["ours", "theirs"],
            "flags": 2,
            "raters": 3,
        }
    ]
    assert [row["harmful"] for row in found["raters"]] == [1, 1, 0]
