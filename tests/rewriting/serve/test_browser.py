"""The page in a real Chromium: by mouse, by keyboard, on a phone, in the dark. No models.

Screenshots at three widths, light and dark, are kept in the test's folder.
"""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rewriting.browser import browser_of, photograph, watch
from tests.rewriting.serve.toys import HELP, KIND, POST, TOKEN, FakeDesk, Served, Site

BAD = "<img src=x onerror=alert(1)> Start earlier. Rest."


class Opened:
    """The page in a browser, and the server behind it. `troubles` should stay empty."""

    def __init__(self, browser: Any, served: Served, **context: Any) -> None:
        self.page = browser.new_context(**context).new_page()
        self.page.set_default_timeout(60_000)
        self.troubles = watch(self.page, served.base)
        self.page.goto(served.base)

    def fill(self, post: str = POST["seeker_post"], reply: str = POST["response_post"]) -> None:
        self.page.get_by_label("The post").fill(post)
        self.page.get_by_label("Your reply", exact=True).fill(reply)

    def suggest(self) -> None:
        self.page.get_by_role("button", name="Suggest a rewrite").click()
        self.page.locator("#working").wait_for(state="hidden")

    def text(self, selector: str = "#composed") -> str:
        return str(self.page.locator(selector).inner_text())


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    return folder


@pytest.fixture
def served() -> Iterator[Served]:
    with Served(Site()) as served:
        yield served


def test_a_suggestion_taken_changed_and_undone(
    chromium: str, served: Served, pictures: Path
) -> None:
    with browser_of(chromium) as browser:
        opened = Opened(browser, served, viewport={"width": 1280, "height": 800})
        page = opened.page
        photograph(page, pictures, "empty")
        opened.fill()
        opened.suggest()
        reply, kind = POST["response_post"], f"{KIND} {POST['response_post']}"
        assert page.evaluate("document.activeElement.id") == "result-title"
        assert opened.text() == kind
        assert page.locator("#composed ins").all_inner_texts() == [KIND]
        assert page.locator("#composed mark.explorations").inner_text() == KIND
        assert "Empathy 3 of 6" in opened.text("#now")
        assert "Empathy 0 of 6" in opened.text("#feedback-line")
        rows = page.locator("#rewards tr").all_inner_texts()
        assert re.split(r"\s*\t\s*", rows[0])[1:] == [str(len(reply)), str(len(kind)), "1"]
        assert "Longer is better." in rows[0]
        assert re.split(r"\s*\t\s*", rows[1])[1:] == ["–", "–", "–"]
        photograph(page, pictures, "result", everywhere=True)
        # Undone, the reply is as it was; taken again, as suggested; and changed by hand.
        page.get_by_role("button", name="Undo this edit").click()
        assert opened.text() == reply
        page.get_by_text("Empathy 0 of 6 as it stands here").wait_for()
        page.get_by_role("button", name="Take this edit").click()
        page.get_by_label("Sentence of edit 1").fill("I am with you.")
        assert opened.text() == f"I am with you. {reply}"
        # Another candidate; and the first one again, with what was made of it.
        page.get_by_label("Alternative 1").check()
        assert opened.text() == f"Why (seed 0)? {reply}"
        page.get_by_label("The reply as it was").check()
        assert opened.text() == reply
        assert page.locator("#edits li").count() == 0
        page.get_by_label("Suggested").check()
        assert opened.text() == f"I am with you. {reply}"
        page.get_by_role("button", name="Other suggestions").click()
        page.get_by_text("Why (seed 1)?").wait_for()
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("#working").wait_for(state="hidden")
        page.get_by_role("button", name="Copy the reply").click()
        page.get_by_text("Copied.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == kind
        assert opened.troubles == []


def test_by_keyboard_alone_and_on_a_dark_phone(chromium: str, served: Served) -> None:
    with browser_of(chromium) as browser:
        opened = Opened(
            browser, served, viewport={"width": 360, "height": 740}, color_scheme="dark"
        )
        page = opened.page
        focused = "document.activeElement.id || document.activeElement.innerText"
        page.keyboard.press("Tab")
        assert page.evaluate(focused) == "Skip to the content"
        for text in POST.values():
            page.keyboard.press("Tab")
            page.keyboard.type(text)
        page.keyboard.press("Control+Enter")
        page.locator("#edits button").wait_for()
        page.locator("#working").wait_for(state="hidden")
        assert page.evaluate(focused) == "result-title"
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate(focused) == "Undo this edit":
                break
        page.keyboard.press("Space")
        assert opened.text() == POST["response_post"]
        assert page.evaluate(focused) == "Take this edit"
        page.keyboard.press("Tab")  # to the candidates, by arrows
        page.keyboard.press("ArrowDown")
        assert opened.text() == f"Why (seed 0)? {POST['response_post']}"
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert opened.troubles == []


def test_a_crisis_says_so_and_shows_where_help_is(
    chromium: str, served: Served, pictures: Path
) -> None:
    with browser_of(chromium) as browser:
        opened = Opened(browser, served)
        opened.fill(post="I want to die.")
        opened.suggest()
        page = opened.page
        assert page.evaluate("document.activeElement.id") == "safety-title"
        assert HELP in opened.text("#safety")
        assert page.locator("#result").is_hidden()
        photograph(page, pictures, "crisis", everywhere=True)
        opened.fill()
        opened.suggest()
        assert page.locator("#safety").is_hidden()
        assert opened.troubles == []


def test_texts_are_texts(chromium: str, served: Served) -> None:
    with browser_of(chromium) as browser:
        opened = Opened(browser, served)
        opened.fill(post=BAD, reply=f"😀 {BAD}")
        opened.suggest()
        assert opened.text() == f"{KIND} 😀 {BAD}"
        assert opened.page.locator("#composed mark").first.inner_text() == KIND
        assert opened.page.locator("main img").count() == 0
        assert opened.troubles == []


def test_it_says_that_work_is_going_on_and_can_be_cancelled(chromium: str) -> None:
    may_end = threading.Event()
    with Served(Site(FakeDesk(lambda _: may_end.wait(60) and None))) as served:
        with browser_of(chromium) as browser:
            opened = Opened(browser, served)
            page = opened.page
            opened.fill()
            page.get_by_role("button", name="Suggest a rewrite").click()
            page.get_by_text("Reading your reply …").wait_for()
            assert page.get_by_role("progressbar", name="Work is going on").is_visible()
            assert page.get_by_role("button", name="Suggest a rewrite").is_disabled()
            page.locator("#elapsed", has_text=re.compile(r"[1-9]\d* s")).wait_for()
            page.get_by_role("button", name="Cancel").click()
            page.get_by_text("Cancelled.").wait_for()
            may_end.set()
            opened.suggest()
            assert opened.text().startswith(KIND)
        may_end.set()


def test_what_is_wrong_is_said_where_it_is(chromium: str) -> None:
    site = Site(token=TOKEN)
    with Served(site) as served, browser_of(chromium) as browser:
        opened = Opened(browser, served)
        page = opened.page
        page.get_by_role("button", name="Suggest a rewrite").click()
        page.get_by_text("Please fill in both texts.").wait_for()
        assert page.evaluate("document.activeElement.id") == "seeker_post"
        opened.fill(reply="a" * 2001)
        page.get_by_role("button", name="Suggest a rewrite").click()
        page.get_by_text("This text is too long.").wait_for()
        opened.fill()
        opened.suggest()
        page.get_by_text("This server asks for a token").wait_for()
        page.get_by_label("Access token").fill(TOKEN)
        opened.suggest()
        assert opened.text().startswith(KIND)
        link = Opened(browser, served)
        link.page.goto("about:blank")
        link.page.goto(f"{served.base}/#token={TOKEN}")
        link.fill()
        link.suggest()
        assert link.text().startswith(KIND)
        assert link.page.url == f"{served.base}/"
        assert link.troubles == []
