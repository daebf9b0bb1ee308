"""A whole study in a real Chromium: create, serve, six raters, admin page, report.

Every kind of page is clicked through with the mouse by one rater and with the keyboard by another;
the other votes are posted as their pages would. What the raters prefer is a rule, so the
report's numbers are known beforehand. Screenshots are kept in the test's folder.
"""

import json
from collections import Counter
from collections.abc import Iterator
from math import comb, sqrt
from pathlib import Path

import pytest

from recipes.cli import main
from rewriting.ab.study.store import Store
from rewriting.ab.study.study import Study, load_study
from tests.rewriting.ab.people import (
    CARELESS,
    CRITERIA,
    RATERS,
    VOTES,
    Person,
    Served,
    preferred,
    write_outputs,
)
from tests.rewriting.browser import WIDTHS, browser_of, photograph, watch


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    folder = tmp_path / "study"
    run(
        ["ab", "create", *write_outputs(tmp_path), "--raters", str(RATERS), "--votes-per-item",
         str(VOTES), "--repeats", "4", "--minimum-seconds", "0", "--output", str(folder),
         "--allow-unsafe-candidates"]
    )  # fmt: skip
    server = Served(folder)
    server.start()
    yield server
    server.kill()


def run(arguments: list[str]) -> None:
    """The command, in this process."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert not end.value.code, f"rewriting {' '.join(arguments)} ended with {end.value.code}"


def walk_with_the_mouse(person: Person, pictures: Path) -> None:
    """Every page, with the mouse; and every page's picture."""
    page = person.page
    page.goto(person.link)
    photograph(page, pictures, "consent")
    page.get_by_role("button", name="I do not want to take part").click()
    photograph(page, pictures, "declined")
    page.get_by_role("button", name="Read the consent text again").click()
    page.get_by_role("button", name="I agree").click()
    photograph(page, pictures, "instructions")
    page.get_by_role("button", name="Start with the practice").click()
    photograph(page, pictures, "practice")
    page.get_by_role("button", name="Save and go on").click()  # without answers: stays here
    assert person.place() == "/pair/1"
    for _ in range(3):
        person.vote_by_mouse()
    photograph(page, pictures, "pair", everywhere=True)
    page.get_by_role("link", name="Back").click()
    assert person.place() == "/pair/3"
    assert page.locator("input:checked").count() == len(CRITERIA)
    person.vote_by_mouse(comment="<script>alert('no')</script>", harmful=True)
    page.get_by_role("link", name="Back").click()
    page.get_by_role("link", name="Forward").click()
    assert person.place() == "/pair/4"
    page.get_by_role("link", name="Instructions").click()
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Letter keys: on").click()
    page.keyboard.press("a")
    assert page.locator("input:checked").count() == 0
    page.get_by_role("button", name="Letter keys: off").click()
    page.get_by_role("button", name="Stop for now").click()
    photograph(page, pictures, "stopped")
    page.get_by_role("button", name="Go on after all").click()
    assert person.place() == "/pair/4"
    person.vote_by_mouse()


def walk_with_the_keyboard(person: Person) -> None:
    """The same pages without a mouse."""
    page = person.page
    page.goto(person.link)
    for text, place in (("I agree", "instructions"), ("Start with the practice", "pair/1")):
        person.press_until_focused("Tab", text)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{place}")
    for _ in range(3):
        person.vote_by_keyboard()
    person.press_until_focused("Shift+Tab", "Back")
    page.keyboard.press("Enter")
    page.wait_for_url("**/pair/3")
    person.vote_by_keyboard()
    # Without letters: Tab from question to question, arrows within one, space on the button.
    person.press_until_focused("Tab", "Letter keys: on")
    page.keyboard.press("Enter")
    for number, answer in enumerate(person.answers().values()):
        for _ in range(10):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.name") == f"answer-{CRITERIA[number]}":
                break
        page.keyboard.press("Space")
        for _ in range(["A", "tie", "B"].index(answer)):
            page.keyboard.press("ArrowRight")
    person.press_until_focused("Tab", "Save and go on")
    page.keyboard.press("Space")
    page.wait_for_url("**/pair/5")
    person.press_until_focused("Tab", "Letter keys: off")
    page.keyboard.press("Enter")
    person.press_until_focused("Tab", "Stop for now")
    page.keyboard.press("Enter")
    page.wait_for_url("**/stopped")
    person.press_until_focused("Tab", "Go on after all")
    page.keyboard.press("Enter")
    page.wait_for_url("**/pair/5")
    person.vote_by_keyboard()


def vote_through_a_crash(person: Person, server: Served) -> None:
    """The server dies while a page is open: the page sends the vote again until it is saved."""
    page = person.page
    for name, answer in person.answers().items():
        page.locator(f'[name="answer-{name}"][value="{answer}"]').check()
    server.kill()
    page.get_by_role("button", name="Save and go on").click()
    page.get_by_text("Not saved yet").wait_for()
    place = person.place()
    server.start()
    person.wait_until_not(place)


def begin(person: Person) -> None:
    person.page.goto(person.link)
    person.page.get_by_role("button", name="I agree").click()
    person.page.get_by_role("button", name="Start with the practice").click()
    person.vote_by_mouse()
    person.vote_by_keyboard()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    return folder


def test_a_study_from_create_to_report(
    chromium: str, served: Served, pictures: Path, tmp_path: Path
) -> None:
    with browser_of(chromium) as browser:
        people = []
        for number in range(1, RATERS + 1):
            width, height = list(WIDTHS.values())[-number % 3]
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if number % 2 == 0 else "light",
            )
            context.set_default_timeout(60_000)
            people.append(Person(number, context.new_page(), served.links[number]))
            people[-1].troubles = watch(people[-1].page, f"http://127.0.0.1:{served.port}/")
        walk_with_the_mouse(people[0], pictures)
        walk_with_the_keyboard(people[1])
        for person in people[2:]:
            begin(person)
        assert not [trouble for person in people for trouble in person.troubles]
        vote_through_a_crash(people[3], served)
        people[3].troubles.clear()  # the browser notes the refused connections
        admin = browser.new_page()
        admin.goto(served.admin)
        another_device = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
        another_device.goto(people[2].link)
        assert another_device.url.endswith("/pair/3")
        for person in people:
            person.vote_by_request()
            assert "Thank you" in person.page.locator("h1").inner_text()
        photograph(people[0].page, pictures, "finished")
        admin.get_by_text("120 of 120").wait_for()  # without loading the page again
        people[0].page.goto(served.admin)
        assert people[0].page.get_by_text("<script>alert('no')</script>").count() == 1
        photograph(people[0].page, pictures, "admin", everywhere=True)
        facts = people[0].page.locator(".facts").inner_text().split("\n")
        assert "120 of 120" in facts
        assert "40 of 40" in facts
        assert people[0].page.get_by_text("finished", exact=True).count() == RATERS
        assert not [trouble for person in people for trouble in person.troubles]
    assert len(list(pictures.iterdir())) == 2 * 6 + 6 * 2
    study = load_study(served.folder)
    check_balance(study, served.folder)
    check_report(study, served.folder, tmp_path / "report.json")


def check_balance(study: Study, folder: Path) -> None:
    """Three votes on every item; each system as often A as B, for every rater."""
    with Store(folder) as store:
        votes = [v for v in store.votes() if study.items[v.item].kind == "item"]
    seen = {(vote.rater, vote.item): vote.left for vote in votes}
    assert Counter(item for _, item in seen) == {i.id: VOTES for i in study.of_kind("item")}
    for rater in study.raters:
        sides = Counter(left for (who, _), left in seen.items() if who == rater)
        assert sides == {"northwind": 10, "southsea": 10}


def check_report(study: Study, folder: Path, output: Path) -> None:
    """The report's numbers are those of the rule."""
    run(["ab", "report", str(folder), "--json", str(output)])
    report = json.loads(output.read_text())
    assert report["excluded"] == [CARELESS]
    for part, raters in (("main", range(1, CARELESS)), ("all_raters", range(1, RATERS + 1))):
        for row in report[part]["comparisons"]:
            winners = Counter(
                preferred(row["criterion"], number_of(study, one.item), rater)
                for rater in raters
                for one in study.assignments[rater]
                if study.items[one.item].kind == "item"
            )
            wins, losses = winners["northwind"], winners["southsea"]
            assert (row["first"], row["second"]) == ("northwind", "southsea")
            assert (row["wins"], row["losses"], row["ties"]) == (wins, losses, winners["tie"])
            decided, split = row["ties_left_out"], row["ties_split"]
            assert decided["win_rate"] == pytest.approx(wins / (wins + losses))
            assert split["win_rate"] == pytest.approx((wins + winners["tie"] / 2) / winners.total())
            assert decided["wilson"] == pytest.approx(wilson_by_hand(wins, wins + losses))
            assert decided["binomial_p"] == pytest.approx(binomial_by_hand(wins, wins + losses))
        for criterion in CRITERIA:
            assert report[part]["consistency"][criterion]["share"] == 1.0
            assert report[part]["consistency"][criterion]["votes"] == 4 * len(raters)


def number_of(study: Study, item: str) -> int:
    return int(study.items[item].seeker_post.split()[1])


def wilson_by_hand(wins: int, votes: int) -> tuple[float, float]:
    z, share = 1.959963984540054, wins / votes
    middle = (share + z * z / (2 * votes)) / (1 + z * z / votes)
    half = z / (1 + z * z / votes) * sqrt(share * (1 - share) / votes + z * z / (4 * votes**2))
    return middle - half, middle + half


def binomial_by_hand(wins: int, votes: int) -> float:
    """Both tails of a fair coin."""
    extreme = max(wins, votes - wins)
    tail = sum(comb(votes, count) for count in range(extreme, votes + 1)) / 2**votes
    return min(1.0, 2 * tail)
