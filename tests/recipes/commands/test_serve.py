"""`rewriting serve`: the command, the desk behind it, and once the real models."""

import http.client
import inspect
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policies.best_of import BestOf
from policies.gated import Guard
from recipes.cli import main
from recipes.commands.serve import EPILOG, TOKEN, Desk, chosen_token, first_sentence, serve
from rewards.identifiers.assessment import Assessment, Judgement
from rewards.reward_sum import RewardSum, Term
from rewriting import MECHANISMS, Edit, Exchange, Rewrite, UserError
from rewriting.safety import HELP, Gate
from rewriting.serve.asking import FIELDS
from rewriting.serve.openapi import ANSWERS, HEALTH, REFUSALS
from tests.rewriting.serve.hostile import STRANGE
from tests.rewriting.serve.test_server import ask, matches
from tests.rewriting.serve.toys import POST, Served, Site

CRISIS = Exchange("I want to kill myself.", "Try again.", id="1")
CLEAR = Exchange("I failed the exam.", "Try again.", id="2")


class Says:
    """Puts a sentence in front, another one for every call."""

    name = "says"

    def __init__(self, *sentences: str) -> None:
        self.sentences, self.calls = sentences, 0

    def rewrite(self, exchanges: Sequence[Exchange], *, seed: int) -> list[Rewrite]:
        sentence = self.sentences[self.calls % len(self.sentences)]
        self.calls += 1
        edit = Edit.insert(0, sentence)
        return [Rewrite(one, f"{sentence} {one.response_post}", (edit,)) for one in exchanges]


def longer(completions: Sequence[str], **_: object) -> list[float]:
    """Longer texts are better.

    Not so in life.
    """
    return [float(len(text)) for text in completions]


class Finds:
    """An identifier that finds explorations in every question."""

    name = "finds"

    def assess(
        self, seeker_posts: Sequence[str], response_posts: Sequence[str], **_: object
    ) -> list[Assessment]:
        return [Assessment({name: self.judged(name, text) for name in MECHANISMS})
                for text in response_posts]  # fmt: skip

    def judged(self, name: str, text: str) -> Judgement:
        asked = tuple(re.findall(r"[^.?!]+\?", text)) if name == "explorations" else ()
        return Judgement(2 if asked else 0, (0.25, 0.25, 0.5), asked)


@pytest.fixture
def desk() -> Desk:
    policy = Says("You are an idiot.", "That hurts, does it?", "I see.")
    best = BestOf(policy, RewardSum({"longer": Term(longer)}), 3, margin=0.5)
    return Desk(best, Guard(Gate()), Finds())


def test_a_rewrite_has_its_alternatives_and_what_can_be_undone(desk: Desk) -> None:
    crisis, clear = desk.rewrite([CRISIS, CLEAR], seed=3)
    assert crisis["rewritten_response"] == "Try again."
    assert (crisis["safety"]["verdict"], crisis["safety"]["help"]) == ("crisis", HELP)
    assert (crisis["alternatives"], crisis["rewards"]) == ([], {})
    assert clear["rewritten_response"] == "That hurts, does it? Try again."
    assert [one["rewritten_response"] for one in clear["alternatives"]] == [
        "I see. Try again.",
        "Try again.",
    ]
    assert clear["alternatives"][1]["rewards"] == {"longer": 10.0}
    assert [one["edited"] for one in clear["changes"]] == [True, False]
    for row in (crisis, clear):
        matches(row, ANSWERS["rewrite"])


def test_scores_say_where_and_what_the_gate_says(desk: Desk) -> None:
    asks = Exchange("I failed.", "Oh. 😀 Why is that?", history=("Hi.",))
    crisis, clear = desk.score([CRISIS, asks])
    assert (clear["explorations"], clear["empathy"], clear["safety"]["verdict"]) == (2, 2, "clear")
    ((start, end),) = clear["spans"]["explorations"]
    assert asks.response_post[start:end] == clear["rationales"]["explorations"][0]
    assert crisis["safety"]["help"] == HELP
    for row in (crisis, clear):
        matches(row, ANSWERS["score"])


def test_no_advice_how_to_change_a_reply_in_a_crisis(desk: Desk) -> None:
    crisis, clear = desk.feedback([CRISIS, CLEAR])
    for name in MECHANISMS:
        assert clear[name]["missing"]
        assert (crisis[name]["missing"], crisis[name]["example"]) == ("", "")
        assert crisis[name]["found"]
    assert crisis["safety"]["verdict"] == "crisis"
    for row in (crisis, clear):
        matches(row, ANSWERS["feedback"])


def test_what_is_told_of_a_desk(desk: Desk) -> None:
    assert desk.about["policy"] == "says"
    assert desk.about["rewards"] == {"longer": {"weight": 1.0, "about": "Longer texts are better."}}
    assert Desk(Says("a"), Guard(Gate()), Finds()).about["rewards"] == {}
    assert first_sentence(lambda **_: []) == ""


def test_every_default_term_says_what_it_is() -> None:
    from recipes.shared.settings import PARTNER_REWARDS
    from rewards.loading import load_function
    from rewards.named import BUILT_INS, rewards_mapping

    for name in rewards_mapping(PARTNER_REWARDS):
        term = load_function(BUILT_INS[name].place)
        assert 20 < len(first_sentence(object.__new__(term))) < 250, name


# The command


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as end:
        main(["serve", *arguments])
    assert end.value.code == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_mistakes_are_one_line_before_a_model_is_loaded(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "Try another --port." in failed(capsys, "--port", port)
    assert "no policy 'nobody'" in failed(capsys, "--policy", "nobody")
    assert "no identifier" in failed(capsys, "--model", "nobody")
    assert "no host name" in failed(capsys, "--allow-host", "a b")
    assert "cannot be written" in failed(capsys, "--port", "0", "--log", str(tmp_path))


def test_a_token_is_taken_from_the_environment_or_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    assert len(chosen_token()) == 32
    assert chosen_token() != chosen_token()
    monkeypatch.setenv(TOKEN, "a-token-of-my-own")
    assert chosen_token() == "a-token-of-my-own"
    monkeypatch.setenv(TOKEN, "short")
    with pytest.raises(UserError, match="16 or more"):
        chosen_token()


def test_help_has_one_example_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["serve", "--help"])
    assert end.value.code == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.startswith("rewriting serve")] == EPILOG.split("\n\n")[
        1:
    ]


ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")


def test_every_option_is_on_the_page_with_its_default() -> None:
    rows = re.findall(r"^\| `--([\w-]+)(?: (\S+))?` \|", PAGE, re.M)
    parameters = inspect.signature(serve).parameters.values()
    known = [(one.name.replace("_", "-"), shown_default(one.default)) for one in parameters]
    assert rows == known


def shown_default(value: Any) -> str:
    if value is None or value is False:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_field_of_requests_and_of_the_log_is_on_the_page() -> None:
    asked = PAGE.split("A request is a JSON object:")[1].split("\n\n")[1]
    assert re.findall(r"^\| `(\w+)` \|", asked, re.M) == list(FIELDS)
    logged = PAGE.split("## The log")[1].split("\n\n")[1]
    named = re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in logged.splitlines()))
    with Site(texts=True) as site:
        site.post()
        site.client.get("/health")
    assert {name for line in site.logged for name in line} <= set(named)
    for status in REFUSALS:
        assert re.search(rf"^\|[^|]*\b{status}\b[^|]*\|", PAGE, re.M), status


def test_the_examples_of_the_page_run(capsys: pytest.CaptureFixture[str]) -> None:
    with Served(Site()) as served:
        (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
        exec(code.replace("http://127.0.0.1:8080", served.base), {})
        (curl,) = re.findall(r"^  -d '(.*)'$", PAGE, re.M)
        assert ask(served.port, "/rewrite", json.loads(curl))[0] == 200
    assert capsys.readouterr().out.startswith("3 {'emotional_reactions'")


TOYS = """
import sys, time
from recipes.cli import main
from recipes.commands.serve import Desk
from tests.rewriting.serve.toys import FakeDesk

def before(exchanges):
    if "slowly" in exchanges[0].seeker_post:
        print("at work", flush=True)
        time.sleep(600)

Desk.load = classmethod(lambda cls, who, model: FakeDesk(before))
main(["serve", "--policy", "generic", "--rate", "0", "--port", sys.argv[1], "--log", sys.argv[2]])
"""
"""The command as it is, with a desk that has no models in the place of the real one."""


@contextmanager
def toys_served(port: int, log: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-c", TOYS, str(port), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        found = re.match(r"page: http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        try:
            assert found, "the server ended at its start"
            yield process, int(found[1])
        finally:
            process.kill()


def test_killed_in_the_middle_of_a_request_and_started_again_it_serves(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with toys_served(0, log) as (process, port):
        assert ask(port, "/rewrite", POST)[0] == 200
        waiting = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        slow = json.dumps(POST | {"seeker_post": "It goes slowly."})
        waiting.request("POST", "/rewrite", slow, {"Content-Type": "application/json"})
        assert process.stdout is not None
        assert "at work\n" in iter(process.stdout.readline, "")
        process.kill()  # SIGKILL: nothing can be tidied up
        assert process.wait(60) == -signal.SIGKILL
        with pytest.raises((http.client.HTTPException, OSError)):
            waiting.getresponse()
        waiting.close()
    with toys_served(port, log) as (process, same):
        assert same == port
        assert ask(port, "/rewrite", POST)[0] == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["route"] for line in lines if line.get("status") == 200] == ["rewrite"] * 2


@dataclass
class Running:
    """`rewriting serve` as a process."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if text.startswith("{") else text

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    log = tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "rewriting", "serve", "--policy", "generic", "--port", "0"]
    options = ["--rewards", "{edit_size: 1}", "--rate", "0", "--timeout", "300", "--log", str(log)]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.match(r"page: http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
    assert found, "the server ended at its start"
    yield Running(process, int(found[1]), log)
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.integration
def test_the_real_thing_from_start_to_stop(running: Running) -> None:
    post = {"seeker_post": "I failed the exam again.", "response_post": "What went wrong?"}
    assert "Suggest a rewrite" in running.ask("GET", "/")[1]
    matches(running.ask("GET", "/health")[1], HEALTH)
    for name, schema in ANSWERS.items():
        status, found = running.ask("POST", f"/{name}", post)
        assert status == 200
        matches(found, schema)
    rewritten = running.ask("POST", "/rewrite", post)[1]
    assert rewritten["rewritten_response"] == (
        "This must have been really hard for you. What went wrong?"
    )
    crisis = running.ask("POST", "/rewrite", post | {"seeker_post": "I want to kill myself."})[1]
    assert crisis["rewritten_response"] == post["response_post"]
    assert crisis["safety"]["verdict"] == "crisis"
    strange = [text for text in STRANGE if len(text) < 500]
    for name in ANSWERS:
        for text in strange:
            for field in post:
                status, _ = running.ask("POST", f"/{name}", post | {field: text})
                assert status in (200, 422), (name, field, text)
    assert running.stop() == 0
    lines = [json.loads(line) for line in running.log.read_text().splitlines()]
    assert lines[-1]["event"] == "stopped"
    assert "exam" not in running.log.read_text()
    assert not [line for line in lines if "failure" in line]
