"""The rater's way through the pages."""

from html import unescape
from pathlib import Path

import pytest

from rewriting.ab.server.tokens import token_hash
from rewriting.ab.study.store import Store
from rewriting.safety.help import HELPLINES
from tests.rewriting.ab.toys import ADMIN, ORIGIN, Site, answers, toy_study


def test_the_way_from_consent_to_the_end(site: Site) -> None:
    assert site.where(1) == "/consent"
    assert site.get(1, "/pair/1").headers["location"].endswith("/consent")
    site.post(1, "/consent", {"answer": "agree"})
    assert site.where(1) == "/instructions"
    site.post(1, "/instructions")
    assert site.where(1) == "/pair/1"
    total = len(site.study.assignments[1])
    for number in range(1, total + 1):
        page = site.get(1, f"/pair/{number}").text
        assert (f"Practice {number} of 2" if number <= 2 else f"Pair {number - 2} of") in page
        site.vote(1, number)
    assert site.where(1) == "/finished"
    assert "Thank you" in site.get(1, "/finished").text
    assert len(site.store.votes()) == 3 * total


def test_the_note_on_practice_comes_after_it(site: Site) -> None:
    site.begin(1)
    first = site.study.items[site.study.assignments[1][0].item]
    assert first.note not in site.get(1, "/pair/1").text
    site.vote(1, 1)
    assert "About the practice pair before" in site.get(1, "/pair/2").text


def test_a_is_the_left_system_and_b_the_right_one(site: Site) -> None:
    site.begin(1)
    for number, (answer, one) in enumerate(
        zip(["A", "B", "tie"], site.study.assignments[1], strict=False), start=1
    ):
        page = unescape(site.get(1, f"/pair/{number}").text)
        replies = site.study.items[one.item].replies
        right = site.study.items[one.item].other(one.left)
        after_a, after_b = page.split("Reply A</h2>")[1].split("Reply B</h2>")
        assert replies[one.left] in after_a
        assert replies[right] in after_b
        site.vote(1, number, answer)
        winners = {vote.winner for vote in site.store.votes(rater=1, item=one.item)}
        assert winners == {{"A": one.left, "B": right, "tie": "tie"}[answer]}


def test_back_and_change_keeps_both_revisions(site: Site) -> None:
    site.begin(1)
    site.vote(1, 1, "A", comment="first thought")
    site.vote(1, 2)
    page = site.get(1, "/pair/1").text
    assert "Save the change" in page
    assert "first thought" in page
    assert page.count(" checked") == 3
    response = site.vote(1, 1, "B")
    assert response.headers["location"].endswith("/pair/2")
    item = site.study.assignments[1][0].item
    assert [v.revision for v in site.store.votes(item=item, all_revisions=True)] == [0] * 3 + [
        1
    ] * 3
    assert {vote.winner for vote in site.store.votes(item=item)} == {
        site.study.items[item].other(site.study.assignments[1][0].left)
    }


def test_sent_again_it_counts_once_and_changed_it_counts_again(site: Site) -> None:
    site.begin(1)
    fields = {
        "ticket": site.ticket(1, 1),
        **answers(site.study, "A"),
        "attempt": "0123456789abcdef",
    }
    for _ in range(3):
        assert site.post(1, "/pair/1", fields).status_code == 303
    assert len(site.store.votes(all_revisions=True)) == 3
    site.post(1, "/pair/1", fields | answers(site.study, "B") | {"attempt": "fedcba9876543210"})
    site.post(1, "/pair/1", fields | {"attempt": "aaaaaaaaaaaaaaaa"})
    assert [v.revision for v in site.store.votes()] == [2, 2, 2]


def test_without_the_script_the_same_form_counts_once(site: Site) -> None:
    site.begin(1)
    fields = {"ticket": site.ticket(1, 1), **answers(site.study, "A")}
    site.post(1, "/pair/1", fields)
    site.post(1, "/pair/1", fields)
    assert len(site.store.votes(all_revisions=True)) == 3


def test_the_script_is_told_the_next_page(site: Site) -> None:
    site.begin(1)
    response = site.client.post(
        site.path(1, "/pair/1"),
        data={"ticket": site.ticket(1, 1), **answers(site.study, "A")},
        headers={"Origin": ORIGIN, "Accept": "application/json"},
    )
    assert response.json() == {"next": site.path(1)}


def test_the_script_is_told_when_a_vote_was_not_saved(site: Site) -> None:
    site.begin(1)
    fields = {"ticket": site.ticket(1, 1), **answers(site.study, "A")}
    headers = {"Origin": ORIGIN, "Accept": "application/json"}
    wrong = fields | {"ticket": "made-up"}
    response = site.client.post(site.path(1, "/pair/1"), data=wrong, headers=headers)
    assert (response.status_code, response.json()) == (409, {"next": site.path(1, "/pair/1")})
    site.post(1, "/stop")
    response = site.client.post(site.path(1, "/pair/1"), data=fields, headers=headers)
    assert (response.status_code, response.json()) == (409, {"next": site.path(1, "/stopped")})
    assert site.store.votes() == []


@pytest.mark.parametrize("missing", ["answer-fluent", "all"])
def test_an_incomplete_answer_comes_back_as_it_was(site: Site, missing: str) -> None:
    site.begin(1)
    fields = {"ticket": site.ticket(1, 1), **answers(site.study, "B"), "comment": "hold <on>"}
    for name in [missing] if missing != "all" else list(answers(site.study, "B")):
        del fields[name]
    response = site.post(1, "/pair/1", fields)
    assert response.status_code == 422
    assert "Please answer every question" in response.text
    assert "hold &lt;on&gt;" in response.text
    assert response.text.count(" checked") == (2 if missing != "all" else 0)
    assert site.store.votes() == []


def test_ties_only_where_the_study_allows_them(tmp_path: Path) -> None:
    with Site(tmp_path / "study", toy_study(allow_ties=False)) as site:
        site.begin(1)
        assert "No difference" not in site.get(1, "/pair/1").text
        assert site.vote(1, 1, "tie").status_code == 422
        assert site.vote(1, 1, "A").status_code == 303


def test_pairs_come_in_order(site: Site) -> None:
    site.begin(1)
    for number in (2, 99, 0):
        assert site.get(1, f"/pair/{number}").headers["location"].endswith("/pair/1")
    fields = {"ticket": site.ticket(1, 1), **answers(site.study, "A")}
    assert site.post(1, "/pair/2", fields).headers["location"].endswith("/pair/1")
    assert site.store.votes() == []


def test_a_ticket_of_another_pair_or_rater_saves_nothing(site: Site) -> None:
    site.begin(1)
    site.begin(2)
    site.vote(1, 1)
    for rater, ticket in ((1, site.ticket(1, 1)), (1, site.ticket(2, 1)), (1, "made-up-ticket")):
        number = 2
        site.post(rater, f"/pair/{number}", {"ticket": ticket, **answers(site.study, "A")})
    assert len(site.store.votes()) == 3


def test_declining_stopping_and_coming_back(site: Site) -> None:
    site.post(1, "/consent", {"answer": "decline"})
    assert site.where(1) == "/stopped"
    assert "nothing but your decision" in site.get(1, "/stopped").text
    site.post(1, "/resume")
    assert site.where(1) == "/consent"
    site.begin(1)
    site.vote(1, 1)
    site.post(1, "/stop")
    assert site.where(1) == "/stopped"
    assert site.get(1, "/pair/1").headers["location"].endswith("/stopped")
    site.post(1, "/resume")
    assert site.where(1) == "/pair/2"


@pytest.mark.parametrize(
    "fields", [{"other": "x"}, {"answer": ""}, {"answer": "maybe"}, {"agree": "yes"}]
)
def test_a_consent_form_without_an_answer_is_asked_again(
    site: Site, fields: dict[str, str]
) -> None:
    response = site.post(1, "/consent", fields)
    assert response.status_code == 422
    assert "Please choose one of the two answers" in response.text
    assert site.store.events() == []
    assert site.where(1) == "/consent"
    site.begin(1)
    assert site.post(1, "/consent", fields).status_code == 422
    assert site.where(1) == "/pair/1"


def test_who_has_finished_can_take_what_others_left(tmp_path: Path) -> None:
    study = toy_study(count=8, raters=2, votes_per_item=1, repeats=0, practice=(), attention=())
    with Site(tmp_path / "study", study) as site:
        site.begin(1)
        for number in range(1, 5):
            site.vote(1, number)
        site.begin(2)
        site.vote(2, 1)
        late = {"ticket": site.ticket(2, 2), **answers(site.study, "A")}
        site.post(2, "/stop")
        assert "Take 3 more" in site.get(1, "/finished").text
        site.post(1, "/more")
        assert site.where(1) == "/pair/5"
        site.post(2, "/resume")
        assert site.where(2) == "/finished"
        site.post(2, "/pair/2", late)
        for number in (5, 6, 7):
            site.vote(1, number)
        assert len({(v.rater, v.item) for v in site.store.votes()}) == 8


def test_a_rater_who_was_added_begins_with_practice_and_takes_from_the_pool(
    tmp_path: Path,
) -> None:
    study = toy_study(count=8, raters=2, votes_per_item=1, repeats=0)
    with Site(tmp_path / "study", study) as site:
        site.begin(1)
        site.post(1, "/stop")
        site.tokens[3] = "a-token-that-was-made-later"
        site.store.add_token(token_hash(site.tokens[3]), 3)
        site.begin(3)
        assert "Practice 1 of 2" in site.get(3, "/pair/1").text
        number = 0
        while (place := site.where(3)) != "/finished":
            number += 1
            assert place == f"/pair/{number}"
            site.vote(3, number)
        assert number == 2 + 4  # all that rater 1 left behind
        kinds = {study.items[vote.item].kind for vote in site.store.votes(rater=3)}
        assert kinds == {"practice", "item"}


def test_a_link_works_on_another_device_and_ends_when_revoked(site: Site) -> None:
    site.begin(1)
    site.vote(1, 1)
    site.client.cookies.clear()
    assert site.where(1) == "/pair/2"
    site.store.revoke(1)
    assert site.get(1).status_code == 404
    assert "does not work" in site.get(1, "/pair/2").text
    assert site.post(1, "/stop").status_code == 404


def test_help_is_on_every_page(site: Site) -> None:
    pages = [site.client.get("/"), site.client.get("/r/none"), site.get(1, "/consent")]
    site.begin(1)
    pages += [site.get(1, path) for path in ("/instructions", "/pair/1")]
    site.post(1, "/stop")
    pages += [site.get(1, "/stopped"), site.client.get(f"/admin/{ADMIN}")]
    for page in pages:
        assert HELPLINES in page.text, page.url


def test_the_admin_page_shows_progress_without_results(site: Site) -> None:
    for rater in (1, 2):
        site.begin(rater)
        for number in range(1, len(site.study.assignments[rater]) + 1):
            site.vote(rater, number, "tie", harmful="yes" if number == 3 else "")
    site.post(3, "/consent", {"answer": "decline"})
    page = site.client.get(f"/admin/{ADMIN}").text
    assert "16 of 24" in page  # 8 items by 2 of 3 raters
    assert page.count("<td>finished</td>") == 2
    assert "<td>declined</td>" in page
    assert page.count("100 %") == 3
    assert "0 of 4" in page, "a tie does not pass an attention check"
    assert page.count("no comment") == 2


def test_a_disk_that_is_full_is_said_and_the_vote_can_be_sent_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    site.begin(1)
    fields = {
        "ticket": site.ticket(1, 1),
        **answers(site.study, "A"),
        "attempt": "0123456789abcdef",
    }

    def full(self: Store, *_: object) -> bool:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "vote", full)
        assert site.post(1, "/pair/1", fields).status_code == 503
    assert site.post(1, "/pair/1", fields).status_code == 303
    assert len(site.store.votes(all_revisions=True)) == 3
