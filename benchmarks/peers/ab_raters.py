"""The rating server as a process, and raters who vote until they are acknowledged."""

from __future__ import annotations

import http.client
import json
import random
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from rewriting.ab.study.study import CRITERIA

TICKET = re.compile(r'name="ticket" value="([^"]+)"')
START_SECONDS = 120.0  # how long a start may take on a machine that does much else


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
