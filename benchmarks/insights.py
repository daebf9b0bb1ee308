"""Does `rewriting insights` find what was planted in a large file, and nothing else, in time?

    python benchmarks/insights.py [--rows 235000] [--folder DIR]

Writes a file of scored replies with known effects, runs the real command on it, and prints what
stands beside what was planted, the seconds and the peak memory. 235,000 is the size of EPITOME's
platform study (arXiv 2009.08441).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.rewriting.insights.planted import PLANTED, command, write_planted


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=235_000)
    parser.add_argument("--folder", type=Path, help="keep the files here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        write_planted(folder / "scores.jsonl", options.rows)
        start = time.perf_counter()
        whole = [sys.executable, "-m", "rewriting", "insights", *command(folder), "--overwrite"]
        subprocess.run(whole, check=True)
        seconds = time.perf_counter() - start
        found = json.loads((folder / "insights.json").read_text())["findings"]
    standing = {(one["question"], one["measure"]) for one in found if one["stands"]}
    print("planted and not found:", PLANTED - standing or "none")
    print("found:", *sorted(standing), sep="\n  ")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    print(f"{options.rows:,} rows in {seconds:.0f} s, peak {peak:.0f} MB")


if __name__ == "__main__":
    main()
