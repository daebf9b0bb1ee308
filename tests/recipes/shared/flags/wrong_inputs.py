"""A program that makes mistakes: reads a list of command lines, answers what came of each.

It runs in an interpreter of its own, where it can be seen whether anything has imported torch.
"""

import contextlib
import io
import json
import sys
import time
import traceback

from recipes.cli import main
from recipes.entry import run_evaluation, run_training

PROGRAMS = {"train.py": run_training, "evaluate.py": run_evaluation, "rewriting": main}


def outcome(program: str, *arguments: str) -> dict[str, object]:
    err, code, failure = io.StringIO(), None, ""
    start = time.process_time()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        try:
            PROGRAMS[program](list(arguments))
        except SystemExit as stop:
            code = stop.code
        except BaseException:
            failure = traceback.format_exc()
    seconds = time.process_time() - start
    torch = "torch" in sys.modules
    found = {"err": err.getvalue(), "code": code, "failure": failure, "torch": torch}
    return found | {"seconds": seconds}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(outcome(*json.loads(line))), flush=True)
