"""The sheet: blind, self-contained, and its results back in, once and only if sound."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewriting.ab.server.sheet import Imported, import_results, render_sheet, sheet_data, sheet_key
from rewriting.ab.study.store import Handover, Store
from rewriting.ab.study.study import Study, save_study
from rewriting.errors import UserError
from tests.rewriting.ab.made_study import made_study

RATER = 2


@pytest.fixture
def study() -> Study:
    return made_study(systems=("northwind", "southsea"), seeker_post="</script><b>I failed</b>")


@pytest.fixture
def store(study: Study, tmp_path: Path) -> Iterator[Store]:
    save_study(study, tmp_path / "study")
    with Store(tmp_path / "study") as store:
        yield store


def results(study: Study, store: Store, answer: str = "A", minute: int = 0) -> dict[str, Any]:
    """What the sheet's download holds when every question got the same answer."""
    data = sheet_data(study, store, RATER)
    answers = [
        {
            "item": page["item"],
            "answers": {one["name"]: answer for one in data["criteria"]},
            "comment": "",
            "harmful": False,
            "seconds": 7.5,
            "time": f"2026-01-01T10:{minute:02d}:00.000Z",
        }
        for page in data["pages"]
    ]
    return {"format": 1, "rater": RATER, "key": data["key"], "consent": True, "answers": answers}


def write(path: Path, row: Any) -> Path:
    path.write_text(json.dumps(row), encoding="utf-8")
    return path


def test_the_sheet_is_blind(study: Study, store: Store) -> None:
    page = render_sheet(study, store, RATER)
    for clue in ("northwind", "southsea", "attention", "expected", "better", "worse", "repeat_of"):
        assert clue not in page
    data = sheet_data(study, store, RATER)
    first, *_ = data["pages"]
    assert set(first) == {"item", "history", "post", "a", "b"}
    for assigned, shown in zip(study.assignments[RATER], data["pages"], strict=True):
        item = study.items[assigned.item]
        assert (shown["a"], shown["b"]) == (
            item.replies[assigned.left],
            item.replies[item.other(assigned.left)],
        )


def test_it_loads_nothing_and_runs_its_own_script_only(study: Study, store: Store) -> None:
    page = render_sheet(study, store, RATER)
    data, script = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert not re.search(r"\b(src|href)=", page)
    assert "url(" not in page
    posts = [one["post"] for one in json.loads(data)["pages"]]
    assert posts[0] == "</script><b>I failed</b> (0)"
    assert "A help line: 000" in page


def test_results_come_back_once(study: Study, store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", results(study, store))
    count = len(study.assignments[RATER])
    assert import_results(study, store, path) == Imported(new=count)
    votes = store.votes()
    assert len(votes) == count * len(study.criteria)
    assert all(vote.winner == vote.left for vote in votes)
    assert votes[0].time == "2026-01-01T10:00:00.000+00:00"
    assert {event.kind for event in store.events(RATER)} == {"consent", "instructed"}
    assert import_results(study, store, path) == Imported(known=count)
    assert store.votes(all_revisions=True) == votes
    assert len(store.events(RATER)) == 2


def test_newer_answers_are_revisions_and_older_ones_are_not(
    study: Study, store: Store, tmp_path: Path
) -> None:
    count = len(study.assignments[RATER])
    newer = write(tmp_path / "newer.json", results(study, store, "B", minute=5))
    older = write(tmp_path / "older.json", results(study, store, "A", minute=1))
    assert import_results(study, store, older) == Imported(new=count)
    assert import_results(study, store, newer) == Imported(new=count)
    assert {vote.revision for vote in store.votes()} == {1}
    assert all(vote.winner == vote.right for vote in store.votes())
    older = write(tmp_path / "older.json", results(study, store, "tie", minute=2))
    assert import_results(study, store, older) == Imported(outdated=count)
    assert all(vote.winner == vote.right for vote in store.votes())


def test_what_went_to_another_rater_is_left_there(
    study: Study, store: Store, tmp_path: Path
) -> None:
    row = results(study, store)
    item = row["answers"][0]["item"]
    store.hand_over(Handover(item, RATER, 9, "northwind"))
    found = import_results(study, store, write(tmp_path / "results.json", row))
    assert found.handed_over == 1
    assert item not in store.items_voted_on(RATER)
    assert item not in {page["item"] for page in sheet_data(study, store, RATER)["pages"]}


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda row: change(row["answers"][1])


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda row: row.update(format=2), "not a results file"),
        (lambda row: row.update(consent=False), "has not agreed"),
        (lambda row: row.update(rater=99), "no rater 99"),
        (lambda row: row.update(rater=True), "no rater True"),
        (lambda row: row.update(rater=1), "not results of a sheet of this study and rater"),
        (lambda row: row.update(key="\ud800"), "not results of a sheet"),
        (lambda row: row.update(answers={}), "no list of answers"),
        (lambda row: row["answers"].append(7), "the pair None was not given to rater 2"),
        (lambda row: row["answers"].append(row["answers"][0]), "answered twice"),
        (changed(lambda one: one.update(item="gone")), "answer 2: the pair 'gone'"),
        (changed(lambda one: one["answers"].pop("fluent")), "answer 2: it needs an answer to each"),
        (
            changed(lambda one: one["answers"].update(fluent="northwind")),
            "'northwind' is no answer",
        ),
        (changed(lambda one: one["answers"].update(fluent=["A"])), "is no answer to fluent"),
        (changed(lambda one: one.update(comment="x" * 2001)), "2000 characters at most"),
        (changed(lambda one: one.update(harmful=1)), "true or false"),
        (changed(lambda one: one.update(seconds=float("nan"))), "no number of seconds"),
        (changed(lambda one: one.update(seconds=-1)), "no number of seconds"),
        (changed(lambda one: one.update(time="yesterday")), "no time"),
        (changed(lambda one: one.update(time="2026-01-01T10:00:00")), "no time"),
        (changed(lambda one: one.update(time=5)), "no time"),
    ],
)
def test_anything_wrong_refuses_the_whole_file(
    study: Study,
    store: Store,
    tmp_path: Path,
    break_it: Callable[[dict[str, Any]], object],
    message: str,
) -> None:
    row = deepcopy(results(study, store))
    break_it(row)
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        import_results(study, store, write(tmp_path / "results.json", row))
    assert "\n" not in str(caught.value)
    assert store.votes() == []
    assert store.events() == []


def test_ties_need_a_study_that_offers_them(study: Study, store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "results.json", results(study, store, "tie"))
    with pytest.raises(UserError, match="'tie' is no answer"):
        import_results(replace(study, allow_ties=False), store, path)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "null"])
def test_files_that_are_no_results_are_named(
    study: Study, store: Store, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"results\.json"):
        import_results(study, store, path)
    with pytest.raises(UserError, match=r"gone\.json"):
        import_results(study, store, tmp_path / "gone.json")


def test_keys_belong_to_a_rater(study: Study, store: Store) -> None:
    assert len({sheet_key(store, rater) for rater in study.raters}) == len(study.raters)
    with pytest.raises(UserError, match="no rater 99"):
        sheet_data(study, store, 99)


def test_a_rater_fills_the_sheet_in_a_browser(
    study: Study, store: Store, tmp_path: Path, chromium: str
) -> None:
    """From the file, offline: consent, every pair, one answer changed, a reload, the download."""
    from playwright.sync_api import sync_playwright

    path = tmp_path / "sheet.html"
    path.write_text(render_sheet(study, store, RATER), encoding="utf-8")
    pages = sheet_data(study, store, RATER)["pages"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(offline=True, accept_downloads=True)
        page = context.new_page()
        problems: list[str] = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(path.as_uri())
        page.click("#agree")
        page.click("text=Save and go on")
        assert page.inner_text("#status") == "Please answer every question."
        for number, shown in enumerate(pages):
            assert page.inner_text("#post") == shown["post"]
            assert page.inner_text("#a") == shown["a"]
            page.check("input[name=answer-empathic][value=A]")
            page.check("input[name=answer-fluent][value=tie]")
            if number == 1:
                page.fill("#comment", "  <i>unkind</i> ")
                page.check("#harmful")
            page.click("text=Save and go on")
            if number == 1:
                page.reload()
        page.click("#review")
        page.check("input[name=answer-empathic][value=B]")
        page.click("text=Save and go on")
        with page.expect_download() as download:
            page.click("#download")
        download.value.save_as(tmp_path / "results.json")
        browser.close()
    assert problems == []
    assert import_results(study, store, tmp_path / "results.json") == Imported(new=len(pages))
    votes = {(vote.item, vote.criterion): vote for vote in store.votes()}
    first, second, last = pages[0]["item"], pages[1]["item"], pages[-1]["item"]
    assert votes[first, "empathic"].winner == votes[first, "empathic"].left
    assert votes[first, "fluent"].winner == "tie"
    assert votes[last, "empathic"].winner == votes[last, "empathic"].right
    assert (votes[second, "fluent"].comment, votes[second, "fluent"].harmful) == (
        "<i>unkind</i>",
        True,
    )
