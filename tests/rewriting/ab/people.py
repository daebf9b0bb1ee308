"""Raters at a browser for the end-to-end test: they read a page and answer it by a rule."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

ITEMS, RATERS, VOTES = 40, 6, 3
CRITERIA = ("empathic", "fluent", "specific")
CARELESS = 6  # the rater who fails every attention check


def preferred(criterion: str, number: int, rater: int) -> str:
    """The rule of the raters: which system wins on which post."""
    if criterion == "empathic":
        return "southsea" if (number + rater) % 4 == 0 else "northwind"
    if criterion == "fluent":
        return "tie" if number % 5 == 0 else ("southsea" if number % 3 else "northwind")
    return "northwind" if number % 2 else "southsea"


REPLY = {
    "northwind": "That sounds so hard, and I am glad you wrote. What was the worst of day {}?",
    "southsea": "Things will get better soon. Try to sleep more, that helped me on day {}.",
}


def write_outputs(folder: Path) -> list[str]:
    arguments = []
    for system, reply in REPLY.items():
        path = folder / f"{system}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(ITEMS):
                row = {
                    "id": f"post-{number}",
                    "seeker_post": f"Day {number} of the new job and I still have nobody to eat "
                    "lunch with. I sit in my car and pretend to be on the phone.",
                    "response_post": "ok",
                    "rewritten_response": reply.format(number),
                }
                file.write(json.dumps(row) + "\n")
        arguments += ["--system", f"{system}={path}"]
    return arguments


@dataclass
class Served:
    """`rewriting ab serve` as a process; its output says the links."""

    folder: Path
    port: int = 0
    links: dict[int, str] = field(default_factory=dict)
    admin: str = ""

    def start(self) -> None:
        command = [sys.executable, "-m", "rewriting", "ab", "serve", str(self.folder)]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        for line in self.process.stdout:
            if found := re.fullmatch(r"rater (\d+): (http\S+)\n", line):
                self.links[int(found[1])] = found[2]
            elif found := re.fullmatch(r"admin page: (http://127\.0\.0\.1:(\d+)/\S+)\n", line):
                self.admin, self.port = found[1], int(found[2])
                return
        raise AssertionError("the server ended at its start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


def chosen(post: str, replies: dict[str, str], rater: int) -> dict[str, str]:
    """What a rater answers to a pair: criterion → A, B or tie."""
    found = re.match(r"Day (\d+) of the new job", post)
    if not found:  # practice and checks: not the reply that asks to choose the other one
        good = "B" if "the other" in replies["A"] else "A"
        bad = "A" if good == "B" else "B"
        return dict.fromkeys(CRITERIA, bad if rater == CARELESS else good)
    letters = {
        "northwind" if "glad you wrote" in text else "southsea": letter
        for letter, text in replies.items()
    }
    letters["tie"] = "tie"
    return {name: letters[preferred(name, int(found[1]), rater)] for name in CRITERIA}


@dataclass
class Person:
    """A rater at a browser: reads the page, answers by the rule."""

    number: int
    page: Any
    link: str
    troubles: list[str] = field(default_factory=list)

    def answers(self) -> dict[str, str]:
        """What this rater answers on the page that is open."""
        replies = {
            letter: self.page.locator(f"section:has(#reply-{letter}) .text").inner_text()
            for letter in "AB"
        }
        return chosen(self.page.locator(".post").inner_text(), replies, self.number)

    def place(self) -> str:
        return str(self.page.url).removeprefix(self.link)

    def wait_until_not(self, place: str) -> None:
        self.page.wait_for_url(lambda url: url.removeprefix(self.link) != place)
        self.page.wait_for_load_state("load")

    def vote_by_mouse(self, *, comment: str = "", harmful: bool = False) -> None:
        for name, answer in self.answers().items():
            self.page.locator(f'label:has([name="answer-{name}"][value="{answer}"])').click()
        if comment:
            self.page.get_by_label("Comment (optional)").fill(comment)
        if harmful:
            self.page.get_by_label("Flag as harmful").check()
        place = self.place()
        self.page.get_by_role("button", name=re.compile("^Save")).click()
        self.wait_until_not(place)

    def vote_by_keyboard(self) -> None:
        for answer in self.answers().values():
            self.page.keyboard.press({"A": "a", "B": "b", "tie": "n"}[answer])
        place = self.place()
        self.page.keyboard.press("Enter")
        self.wait_until_not(place)

    def vote_by_request(self) -> None:
        """All that is left, by the requests that the page's script would make."""
        site = self.link.split("/r/")[0]
        ask = self.page.context.request
        headers = {"Origin": site, "Accept": "application/json"}
        address = ask.get(self.link).url
        while "/pair/" in (response := ask.get(address)).url:
            page = unescape(response.text())
            post, *replies = re.findall(r'dir="auto">(.*?)</div>', page, re.DOTALL)
            answers = chosen(post, dict(zip("AB", replies, strict=True)), self.number)
            form = {f"answer-{name}": answer for name, answer in answers.items()}
            (form["ticket"],) = re.findall(r'name="ticket" value="([^"]+)"', page)
            saved = ask.post(response.url, form=form, headers=headers)
            assert saved.ok
            address = site + saved.json()["next"]
        self.page.goto(self.link)

    def press_until_focused(self, key: str, text: str) -> None:
        """Walk with the keyboard to the button or link that says this."""
        for _ in range(40):
            self.page.keyboard.press(key)
            if text in str(self.page.evaluate("document.activeElement.innerText || ''")):
                return
        raise AssertionError(f"{text!r} cannot be reached with {key}")
