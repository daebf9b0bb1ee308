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
import json
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from ab_raters import Rater, Server

from rewriting.ab.server.tokens import new_token, token_hash
from rewriting.ab.study.create import Design, Output, create_study
from rewriting.ab.study.store import Store
from rewriting.ab.study.study import save_study


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
    """Votes under one condition, and what of a processor the server used meanwhile.

    On a machine with other work the times say how long the server and the raters had to wait for a
    processor; what it used says how much of one it needs.
    """
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
    used, passed = server.processor_seconds() - used, time.perf_counter() - start
    done.set()
    for helper in helpers:
        helper.join()
    with Store(server.folder) as store:
        found = lost_or_doubled(store, voters)
    rest: dict[str, float] = {
        "lost": found["lost"],
        "refused": sum(len(voter.problems) for voter in voters),
        "processor, percent": round(100 * used / passed, 1),
    }
    if condition.admin:
        rest["admin pages"] = len(admin)
        if admin:
            rest["p50 of the admin page"] = round(1000 * percentile(admin, 0.5), 1)
    figures = timings(voters)
    rest["processor, milliseconds a vote"] = round(1000 * used / figures["votes"], 2)
    return figures | rest


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
