"""Does the rating server keep every acknowledged vote through kill -9, and how fast is a vote?

    python benchmarks/ab_server.py [--kills 200] [--raters 20] [--slow 300] [--json OUT.json]

Starts the real command `rewriting ab serve` on a made-up study. Raters in threads fetch their pages
and vote; a vote that gets no answer is sent again, under the same attempt, until it is
acknowledged, as the page's script does. Meanwhile the server is killed with SIGKILL and started
again, so many times. Afterwards the log must hold every acknowledged vote once, as it was given.
Then, without kills, the time of a vote is measured: with raters who never pause, with raters who
read for a while, with these while slow clients hold so many sockets open (half of them silent,
half sending a byte a second; a socket that is closed is opened again), and with these while the
admin page is asked for again and again as well.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from rewriting.ab.server.tokens import new_token, token_hash
from rewriting.ab.study.create import Design, Output, create_study
from rewriting.ab.study.store import Store
from rewriting.ab.study.study import CRITERIA, save_study

TICKET = re.compile(r'name="ticket" value="([^"]+)"')
START_SECONDS = 120.0  # how long a start may take on a machine that does much else


def make_study(folder: Path, raters: int, exchanges: int = 60) -> dict[int, str]:
    """A study in a folder; rater → token."""
    outputs = {
        name: [
            Output(str(number), f"Post {number}.", f"{word} {number}.")
            for number in range(exchanges)
        ]
        for name, word in (("north", "Warm words"), ("south", "Other words"))
    }
    save_study(
        create_study(outputs, Design(raters=raters, votes_per_item=raters // 2 or 1)), folder
    )
    tokens = {rater: new_token() for rater in range(1, raters + 1)}
    with Store(folder) as store:
        for rater, token in tokens.items():
            store.add_token(token_hash(token), rater)
            for event in ("consent", "instructed"):
                store.add_event(rater, event)
    return tokens


class Server:
    """`rewriting ab serve` as a process of its own, on one port."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.folder = folder
        self.admin = ""
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "rewriting", "ab", "serve", str(self.folder)]
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("admin page: "):  # the last line that is printed
                self.admin = urlsplit(line.removeprefix("admin page: ").strip()).path
                break
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("the server ended at its start") from None
                time.sleep(0.02)
        raise SystemExit("the server did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.close()

    def stop(self) -> None:
        self.process.terminate()
        if self.process.wait(START_SECONDS) != 0:
            raise SystemExit(f"the server ended with {self.process.returncode}")
        self.close()

    def processor_seconds(self) -> float:
        import psutil

        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    def close(self) -> None:
        """Close the pipe that the server has printed to."""
        if self.process.stdout is not None:
            self.process.stdout.close()


@dataclass
class Rater:
    """Votes on pair after pair, again and again, until told to stop.

    acknowledged: attempt → (criterion → answer), of votes that the server said it has.
    pending: the same of the vote that is on its way.
    """

    port: int
    token: str
    pause: float = 0.0
    acknowledged: dict[str, dict[str, str]] = field(default_factory=dict)
    pending: dict[str, dict[str, str]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    retries: int = 0
    problems: list[str] = field(default_factory=list)

    def run(self, done: threading.Event) -> None:
        page = f"/r/{self.token}"
        while not done.is_set():
            status, body = self.ask("GET", page)
            if status == 303:
                page = body
            elif status == 200 and (ticket := TICKET.search(body)):
                page = self.vote(page, ticket[1], done) or page
            elif status == 200:  # finished: change the answers from the first pair on
                page = f"/r/{self.token}/pair/1"
            elif status:
                self.problems.append(f"{status} on GET {page}")
                return

    def vote(self, page: str, ticket: str, done: threading.Event) -> str | None:
        """Send one vote until it is acknowledged. Returns the next page."""
        attempt = secrets.token_hex(8)
        answers = {one.name: random.choice(["A", "B", "tie"]) for one in CRITERIA}
        fields = {f"answer-{name}": answer for name, answer in answers.items()}
        body = urlencode(fields | {"ticket": ticket, "attempt": attempt})
        self.pending = {attempt: answers}
        if self.pause:
            time.sleep(random.uniform(0.5, 1.5) * self.pause)
        while not done.is_set():
            start = time.perf_counter()
            status, answer = self.ask("POST", page, body)
            if status == 200:
                self.seconds.append(time.perf_counter() - start)
                self.acknowledged[attempt] = answers
                self.pending = {}
                return str(json.loads(answer)["next"])
            if status and status < 500:
                self.problems.append(f"{status} on POST {page}")
                return None
            self.retries += 1
            time.sleep(0.02)
        return None

    def ask(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        """(status, text); (303, the new address) of a redirect; (0, "") without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {
            "Origin": f"http://127.0.0.1:{self.port}",
            "Content-Type": "application/x-www-form-urlencoded",
        } | ({"Accept": "application/json"} if method == "POST" else {})
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode()
            return response.status, response.headers.get("Location") or text
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
            return 0, ""
        finally:
            connection.close()


def lost_or_doubled(store: Store, raters: list[Rater]) -> Counter[str]:
    """Compare the log with what the raters were told: nothing but votes in flight may differ."""
    logged: dict[str, dict[str, str]] = {}
    found: Counter[str] = Counter()
    for key, vote in store.votes_with_keys():
        attempt = key.partition("-")[2]
        answer = {vote.left: "A", vote.right: "B"}.get(vote.winner, "tie")
        if vote.criterion in logged.setdefault(attempt, {}):
            found["doubled"] += 1
        logged[attempt][vote.criterion] = answer
    for rater in raters:
        for attempt, answers in rater.acknowledged.items():
            found["lost"] += logged.pop(attempt, None) != answers
        for attempt in rater.pending:
            found["in flight, saved"] += logged.pop(attempt, None) is not None
    found["unknown"] = len(logged)
    return found


def vote_for_a_while(
    server: Server, tokens: dict[int, str], *, pause: float, kills: int = 0, seconds: float = 0.0
) -> list[Rater]:
    """Let all raters vote, through so many kills and at least for so many seconds."""
    raters = [Rater(server.port, token, pause) for token in tokens.values()]
    done = threading.Event()
    threads = [threading.Thread(target=rater.run, args=(done,)) for rater in raters]
    for thread in threads:
        thread.start()
    for number in range(kills):
        votes = sum(len(rater.acknowledged) for rater in raters)
        while sum(len(rater.acknowledged) for rater in raters) < votes + len(raters) // 4:
            time.sleep(0.002)
        time.sleep(random.random() * 0.1)
        server.kill()
        server.start()
        if (number + 1) % 20 == 0:
            print(f"{number + 1} kills, {votes:,} votes acknowledged", flush=True)
    time.sleep(seconds)
    done.set()
    for thread in threads:
        thread.join()
    return raters


def hold_sockets(port: int, count: int, done: threading.Event) -> None:
    """So many connections that never finish a request: silent ones, and ones that send bytes."""
    held: dict[int, socket.socket] = {}
    while not done.is_set():
        for number in range(count):
            try:
                if number not in held:
                    held[number] = socket.create_connection(("127.0.0.1", port), timeout=1)
                if number % 2:
                    held[number].sendall(b"G")
                held[number].setblocking(False)
                if held[number].recv(1) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                continue
            except OSError:
                if number in held:
                    held.pop(number).close()
        done.wait(1)
    for client in held.values():
        client.close()


def ask_for_admin(server: Server, done: threading.Event, seconds: list[float]) -> None:
    """The admin page, every second."""
    asking = Rater(server.port, "")
    while not done.wait(1):
        start = time.perf_counter()
        if asking.ask("GET", server.admin)[0] == 200:
            seconds.append(time.perf_counter() - start)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def timings(raters: list[Rater]) -> dict[str, float]:
    """Of single votes, in milliseconds, and how many."""
    seconds = [value for rater in raters for value in rater.seconds]
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {name: round(1000 * percentile(seconds, share), 1) for name, share in shares.items()} | {
        "votes": len(seconds)
    }


@dataclass(frozen=True)
class Condition:
    """How long raters read, and what else keeps the server busy."""

    pause: float
    slow: bool = False
    admin: bool = False


CONDITIONS = {
    "no pause": Condition(0.0),
    "reading 2 s": Condition(2.0),
    "reading 2 s, slow sockets": Condition(2.0, slow=True),
    "reading 2 s, slow sockets and the admin page": Condition(2.0, slow=True, admin=True),
}


def measured(
    server: Server, tokens: dict[int, str], condition: Condition, held: int, seconds: float
) -> dict[str, float]:
    """Votes under one condition. processor: of the server, in seconds for each second."""
    done, admin = threading.Event(), list[float]()
    helpers = []
    if condition.slow:
        holding = (server.port, held, done)
        helpers.append(threading.Thread(target=hold_sockets, args=holding))
    if condition.admin:
        helpers.append(threading.Thread(target=ask_for_admin, args=(server, done, admin)))
    for helper in helpers:
        helper.start()
    start, used = time.perf_counter(), server.processor_seconds()
    voters = vote_for_a_while(server, tokens, pause=condition.pause, seconds=seconds)
    share = (server.processor_seconds() - used) / (time.perf_counter() - start)
    done.set()
    for helper in helpers:
        helper.join()
    with Store(server.folder) as store:
        found = lost_or_doubled(store, voters)
    rest: dict[str, float] = {
        "lost": found["lost"],
        "refused": sum(len(voter.problems) for voter in voters),
    }
    if condition.admin:
        rest["admin pages"] = len(admin)
        if admin:
            rest["p50 of the admin page"] = round(1000 * percentile(admin, 0.5), 1)
    return timings(voters) | {"processor": round(share, 3)} | rest


def survive(folder: Path, *, kills: int, raters: int) -> dict[str, int]:
    """Kill and restart under load; what was lost, doubled, or is damaged."""
    tokens = make_study(folder, raters)
    server = Server(folder)
    voters = vote_for_a_while(server, tokens, pause=0.0, kills=kills)
    server.stop()
    with Store(folder) as store:
        found = lost_or_doubled(store, voters)
        return {
            "kills": kills,
            "raters": raters,
            "acknowledged": sum(len(voter.acknowledged) for voter in voters),
            "sent again": sum(voter.retries for voter in voters),
            "lost": found["lost"],
            "doubled": found["doubled"],
            "unknown": found["unknown"],
            "integrity problems": len(store.problems()),
            "refused": sum(len(voter.problems) for voter in voters),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--raters", type=int, default=20)
    parser.add_argument("--slow", type=int, default=300, help="sockets of slow clients")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each timing")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        result: dict[str, object] = {
            "survival": survive(Path(name) / "killed", kills=options.kills, raters=options.raters)
        }
        tokens = make_study(Path(name) / "timed", options.raters)
        server = Server(Path(name) / "timed")
        for title, condition in CONDITIONS.items():
            held = options.slow if condition.slow else 0
            result[f"milliseconds of a vote, {title}"] = measured(
                server, tokens, condition, held, options.seconds
            )
        server.stop()
    print(json.dumps(result, indent=2))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
