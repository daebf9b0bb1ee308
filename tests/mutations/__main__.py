"""The large counts: `python -m tests.mutations --help`."""

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path

from tests import mutations
from tests.mutations.run import SHOWN, run
from tests.mutations.subjects import SUBJECTS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=mutations.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=int, default=20_000, help="mutated data files")
    parser.add_argument("--others", type=int, default=2_000, help="of every other subject")
    parser.add_argument("--seed", type=int, default=0, help="of the first case; they go up by 1")
    parser.add_argument("--subject", choices=SUBJECTS, help="this one only")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # damaged checkpoints and jobs are reported by the thousand
    failed = 0
    for subject in [options.subject] if options.subject else SUBJECTS:
        count = options.data if subject == "data files" else options.others
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            ended, wrong = run(subject, count, options.seed, Path(name))
        ways = ", ".join(f"{way} {number:,}" for way, number in ended.most_common())
        print(f"{subject}: {count:,} in {time.monotonic() - start:,.0f} s: {ways}", flush=True)
        brief = [one.splitlines()[0] for one in wrong[SHOWN:]]
        print("".join(f"{one}\n" for one in [*wrong[:SHOWN], *brief]), end="", file=sys.stderr)
        failed += len(wrong)
    print(f"{failed:,} cases went wrong")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
