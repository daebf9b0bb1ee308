"""Does `rewriting score` stream a large file in constant memory, and survive being killed?

    python benchmarks/streaming.py [--pairs 100000] [--kills 3] [--json OUT.json]

Writes so many generated pairs to a temporary file, scores them with the real command, kills it with
SIGKILL so many times on the way and starts it again. Prints the peak memory after the first tenth
and at the end, and whether every row came out exactly once and in order.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

FEELINGS = ("sad", "tired", "afraid", "angry", "alone", "lost", "numb", "ashamed")
CAUSES = ("my job", "my exam", "my mother", "the move", "the divorce", "my health", "school")
REPLIES = ("I am sorry.", "Same here.", "What happened?", "Try to sleep.", "That must hurt.")


def write_pairs(path: Path, count: int) -> None:
    """Pairs that all differ, so that nothing is scored once for many."""
    texts = list(product(FEELINGS, CAUSES, REPLIES))
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            feeling, cause, reply = texts[number % len(texts)]
            row = {
                "id": str(number),
                "seeker_post": f"I am {feeling} because of {cause}, day {number}.",
                "response_post": f"{reply} Day {number} will pass.",
            }
            file.write(json.dumps(row) + "\n")


def peak_megabytes(process: subprocess.Popen[bytes]) -> float:
    """The most memory the process has held so far; 0 where that cannot be read."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return 0.0
    lines = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return float(next(lines, "VmHWM: 0 kB").split()[1]) / 1024


def lines_in(folder: Path) -> int:
    """Lines written so far, in the result or in what is on its way to it."""
    found = [path for path in folder.iterdir() if "scores" in path.name and path.is_file()]
    return max((path.read_bytes().count(b"\n") for path in found), default=0)


def run(folder: Path, count: int, kills: int) -> Iterator[tuple[str, int, float]]:
    """Score the file; what happened, after how many lines, at what peak of memory."""
    output = folder / "scores.jsonl"
    command = [sys.executable, "-m", "rewriting", "score"]
    command += ["--input", str(folder / "pairs.jsonl"), "--output", str(output)]
    bounds = [count * (number + 1) // (kills + 1) for number in range(kills)]
    for bound in [*bounds, None]:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        early, peak = False, 0.0
        while process.poll() is None:
            peak = peak_megabytes(process) or peak
            done = lines_in(folder)
            if bound is None and not early and done >= count * 0.8:
                early = True
                yield "going", done, peak
            if bound is not None and done >= bound:
                process.send_signal(signal.SIGKILL)
                process.wait()
                yield "killed", done, peak
            time.sleep(2)
        if bound is None:
            yield f"ended with code {process.returncode}", lines_in(folder), peak


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pairs(folder / "pairs.jsonl", options.pairs)
        start, events = time.perf_counter(), []
        for what, lines, peak in run(folder, options.pairs, options.kills):
            print(f"{what:<22}{lines:>9,} lines   peak {peak:7.0f} MB")
            events.append({"what": what, "lines": lines, "peak_megabytes": peak})
        seconds = time.perf_counter() - start
        with (folder / "scores.jsonl").open(encoding="utf-8") as file:
            ids = [int(json.loads(line)["id"]) for line in file]
    exact = ids == list(range(options.pairs))
    print(
        f"every row once and in order: {exact}   "
        f"{options.pairs / seconds:.0f} pairs/s, kills and starts included"
    )
    if options.json:
        figures = {"events": events, "exact": exact, "seconds": seconds}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    raise SystemExit(0 if exact else 1)


if __name__ == "__main__":
    main()
