"""How does `rewriting serve` bear many clients at once?

    python benchmarks/serve.py [--clients 50] [--seconds 60] [--policy bank] [--json OUT.json]

Starts the real command and measures, in this order:
1. one client, one request after another: the throughput without batches;
2. so many clients, each of which sends its next request when it has the answer to the last one.

Posts and replies are those of the bundled sample. Every answer has to hold the very reply that was
sent, and the rewrite that belongs to it: one that is another client's is a mixed answer. The
waiting time is compared with the time that the models needed for the batch of the request, as the
log of the server says it. Afterwards the server is killed with SIGKILL, started again on the same
port, and has to answer.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from rewriting.data.load import load_exchanges

WARM_UP = 2


class Server:
    """`rewriting serve` as a process of its own."""

    def __init__(self, policy: str, log: Path, options: list[str]) -> None:
        self.policy, self.log, self.options, self.port = policy, log, options, 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "rewriting", "serve", "--policy", self.policy]
        command += ["--port", str(self.port), "--rate", "0", "--timeout", "600"]
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--log", str(self.log), *self.options], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        found = re.match(r"page: http://127\.0\.0\.1:(\d+)/", self.process.stdout.readline())
        if not found:
            raise SystemExit("the server ended at its start")
        self.port = int(found[1])
        self.start_seconds = time.perf_counter() - begin

    def kill(self, number: int = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        code = self.process.wait(600)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def memory(self) -> float:
        """The most memory that the process has had, in MB; 0 where the system does not say."""
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0.0
        found = re.search(r"VmHWM:\s+(\d+) kB", text)
        return int(found[1]) / 1024 if found else 0.0


@dataclass
class Client:
    """Sends requests one after another until told to stop."""

    port: int
    path: str
    bodies: list[dict[str, Any]]
    numbers: Any
    seconds: list[float] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    mixed: int = 0

    def run(self, done: threading.Event) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=900)
        while not done.is_set():
            number = next(self.numbers)
            body = self.bodies[number % len(self.bodies)] | {"id": f"request {number}"}
            start = time.perf_counter()
            try:
                headers = {"Content-Type": "application/json"}
                connection.request("POST", self.path, json.dumps(body), headers)
                answer = connection.getresponse()
                found = json.loads(answer.read())
            except (OSError, http.client.HTTPException, ValueError):
                connection.close()
                self.statuses[0] += 1
                continue
            self.statuses[answer.status] += 1
            if answer.status == 200:
                self.seconds.append(time.perf_counter() - start)
                self.requests.append(answer.headers["X-Request-Id"])
                self.mixed += not belongs(found, body)
        connection.close()


def belongs(found: dict[str, Any], body: dict[str, Any]) -> bool:
    """Whether an answer is the answer to this request."""
    if any(found.get(name, body[name]) != body[name] for name in body):
        return False
    pieces = found.get("changes", [])
    return not pieces or "".join(one["before"] for one in pieces) == body["response_post"]


def measure(port: int, path: str, bodies: list[Any], clients: int, seconds: float) -> list[Client]:
    numbers, done = count(), threading.Event()
    people = [Client(port, path, bodies, numbers) for _ in range(clients)]
    threads = [threading.Thread(target=one.run, args=(done,)) for one in people]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    done.set()
    for thread in threads:
        thread.join()
    return people


def summary(people: list[Client], elapsed: float, lines: dict[str, Any]) -> dict[str, Any]:
    """What a measurement gave; waits beside the time of the models for the same batch."""
    seconds = sorted(value for one in people for value in one.seconds)
    if not seconds:
        raise SystemExit("no request was answered: give more --seconds")
    statuses: Counter[int] = sum((one.statuses for one in people), Counter())
    pairs = [
        (value, lines[number]["ms"] / 1000, lines[number]["batch"])
        for one in people
        for value, number in zip(one.seconds, one.requests, strict=True)
        if number in lines
    ]
    return {
        "requests": len(seconds),
        "statuses": dict(statuses),
        "errors": sum(number for status, number in statuses.items() if status != 200),
        "mixed": sum(one.mixed for one in people),
        "per_second": len(seconds) / elapsed,
        "median_seconds": statistics.median(seconds),
        "p95_seconds": p95(seconds),
        "p95_of_wait_over_model_time": p95([wait / max(work, 1e-9) for wait, work, _ in pairs]),
        "p95_model_seconds": p95([work for _, work, _ in pairs]),
        "mean_batch": statistics.fmean(size for *_, size in pairs),
    }


def p95(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def read_log(path: Path) -> dict[str, Any]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["request"]: row for row in rows if row.get("status") == 200 and "ms" in row}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--policy", default="bank")
    parser.add_argument("--path", default="/rewrite", help="/rewrite, /score or /feedback")
    parser.add_argument("--json", type=Path)
    options, more = parser.parse_known_args()
    bodies = [
        {"seeker_post": one.seeker_post, "response_post": one.response_post}
        for one in load_exchanges("sample:test")
    ]
    result: dict[str, Any] = {"clients": options.clients, "policy": options.policy}
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "log.jsonl"
        server = Server(options.policy, log, more)
        result["start_seconds"] = server.start_seconds
        measure(server.port, options.path, bodies, WARM_UP, 0.1)
        for title, clients in (("one_client", 1), ("many_clients", options.clients)):
            start = time.perf_counter()
            people = measure(server.port, options.path, bodies, clients, options.seconds)
            time.sleep(0.5)  # the last lines of the log
            result[title] = summary(people, time.perf_counter() - start - 0.5, read_log(log))
            print(f"{title}: {json.dumps(result[title])}", flush=True)
        ratio = result["many_clients"]["per_second"] / result["one_client"]["per_second"]
        result["throughput_ratio"] = ratio
        result["peak_memory_mb"] = server.memory()
        server.kill()
        server.start()
        again = Client(server.port, options.path, bodies, count())
        done = threading.Event()
        thread = threading.Thread(target=again.run, args=(done,))
        thread.start()
        while not again.statuses:
            time.sleep(0.05)
        done.set()
        thread.join()
        result["answers_after_a_kill"] = again.statuses[200] > 0
        result["exit_code_after_sigterm"] = server.kill(signal.SIGTERM)
    print(f"throughput of {options.clients} clients beside one: {ratio:.2f} ×")
    print(json.dumps(result, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
