"""Abandoned work returns to the pool, and comes out of it balanced."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from rewriting.ab.server.work import CONSENT, INSTRUCTED, RESUMED, SHEET, STOPPED, Work
from rewriting.ab.study.schedule import lead_of
from rewriting.ab.study.store import Ballot, Store
from rewriting.ab.study.study import Study, Vote
from tests.rewriting.ab.toys import toy_study


@pytest.fixture
def work(tmp_path: Path) -> Work:
    study = toy_study(count=12, raters=4, votes_per_item=2, repeats=1)
    work = Work(study, Store(tmp_path), timedelta(hours=1))
    for rater in study.raters:
        work.store.add_token(f"hash {rater}", rater)
        work.store.add_event(rater, CONSENT)
        work.store.add_event(rater, INSTRUCTED)
    return work


def vote(work: Work, rater: int, count: int | None = None) -> None:
    """The next so many pairs of a rater, or all that are left."""
    progress = work.progress(rater)
    todo = [one for one in progress.assigned if one.item not in progress.voted]
    for one in todo[:count]:
        right = work.study.items[one.item].other(one.left)
        ballot = Ballot({"empathic": one.left}, one.left, right)
        work.store.vote(f"{rater} {one.item}", rater, one.item, ballot)


def counted(study: Study, votes: list[Vote]) -> Counter[str]:
    return Counter(vote.item for vote in votes if study.items[vote.item].kind == "item")


def test_nothing_is_in_the_pool_while_all_work(work: Work) -> None:
    vote(work, 1, 3)
    assert work.pool() == []
    assert work.progress(1).position == 4
    assert work.progress(1).done == 3


@pytest.mark.parametrize("how", ["stopped", "revoked", "idle"])
def test_work_of_raters_who_leave_is_done_by_others(
    work: Work, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vote(work, 1, 5)
    if how == "stopped":
        work.store.add_event(1, STOPPED)
    elif how == "revoked":
        work.store.revoke(1)
    else:
        long_ago = "2020-01-01T00:00:00.000+00:00"
        seen = work.store.last_seen
        monkeypatch.setattr(work.store, "last_seen", lambda r: long_ago if r == 1 else seen(r))
    for rater in (2, 3, 4):
        vote(work, rater)
    waiting = {item for _, item in work.pool()}
    assert waiting
    for rater in (2, 3, 4):
        work.take_more(rater, 100)
        vote(work, rater)
    assert work.pool() == []
    votes = work.store.votes()
    assert counted(work.study, votes) == {item.id: 2 for item in work.study.of_kind("item")}
    pairs = [(vote.rater, vote.item) for vote in votes]
    assert len(pairs) == len(set(pairs)), "a rater judged an item twice"
    for rater in (2, 3, 4):
        mine = [one for one in work.assigned(rater) if work.study.items[one.item].kind == "item"]
        assert all(abs(lead) <= 1 for lead in lead_of(mine, work.study.items).values())


def test_who_comes_back_goes_on_with_what_is_left(work: Work) -> None:
    work.store.add_event(1, STOPPED)
    before = work.assigned(1)
    vote(work, 2)
    taken = work.take_more(2, 2)
    work.store.add_event(1, RESUMED)
    assert taken == 2
    assert len(work.assigned(1)) == len(before) - 2
    assert not work.progress(1).stopped
    assert work.pool() == []
    assert work.take_more(2, 5) == 0


def test_a_rater_who_was_added_takes_what_was_left(work: Work) -> None:
    work.store.add_event(3, STOPPED)
    work.store.add_token("hash of a new one", 9)
    assert work.raters() == [1, 2, 3, 4, 9]
    kinds = [work.study.items[one.item].kind for one in work.progress(9).assigned]
    assert kinds == ["practice", "practice"]
    vote(work, 9)
    assert work.take_more(9, 100) == 6
    kinds = [work.study.items[one.item].kind for one in work.assigned(9)]
    assert kinds == ["practice", "practice", *["item"] * 5, "attention", "item"]
    vote(work, 9, 2)
    before = work.assigned(9)
    work.store.add_event(9, STOPPED)
    left = {one.item for one in before[4:] if work.study.items[one.item].kind == "item"}
    left -= {one.item for one in work.assigned(2)}
    assert work.take_more(2, 100) == len(left) > 0
    assert work.assigned(9)[:4] == before[:4], "places that were answered stay"


def test_what_was_given_away_does_not_come_back(work: Work) -> None:
    work.store.add_event(1, STOPPED)
    assert work.take_more(2, 100) > 0
    work.store.add_event(2, STOPPED)
    work.store.add_event(1, RESUMED)
    assert {item for _, item in work.on_offer(1)}.isdisjoint(
        one.item for one in work.store.handovers()
    )


def test_whoever_has_a_sheet_is_not_away(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work.store, "last_seen", lambda rater: "2020-01-01T00:00:00.000+00:00")
    work.store.add_event(1, SHEET)
    assert {rater for rater, _ in work.pool()} == {2, 3, 4}
    work.store.revoke(1)
    assert {rater for rater, _ in work.pool()} == {1, 2, 3, 4}
