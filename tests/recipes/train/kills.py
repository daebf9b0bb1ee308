"""kill -9 in `train.py identifier` and `train.py partner`, and what the runs come to in the end.

    python -m tests.recipes.train.kills --recipe identifier [--kills 50] [--seed 1]

The real command trains a toy of a few steps, with a checkpoint after almost every one. One run is
left alone. Others are killed at random moments and started again, until they end: a moment is a
number of changes below the output folder, drawn by the seed, and up to 50 milliseconds after the
last of them, so that kills fall into saves and into the last files too. What a killed run leaves
must be what the one left alone has left: the same bits in every weight, the same log, the same
model. The test suite does this with one kill.

Most of a start goes into importing libraries. So a process imports them once and is copied (fork)
for each start, where the system can do that; the copy runs train.py and is killed. The run that is
left alone, and every start with --fresh, is a `python train.py` of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from rewriting.exchange import MECHANISMS

ROOT = Path(__file__).parents[3]
MOST_CHANGES = 40  # between a start and its kill; a step with a checkpoint is about ten
MOST_SECONDS = 0.05  # from the last of the changes to the kill
POLL_SECONDS = 0.002
PATIENCE = 900.0  # seconds: a run that changes nothing for so long hangs


def identifier_toy(folder: Path) -> dict[str, Any]:
    """A pre-training of 4 steps and a training of 24, on a tiny encoder."""
    from transformers import AutoTokenizer

    from tests.tiny_lm import write_tiny_encoder

    encoder = write_tiny_encoder(folder)
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    tokenizer.mask_token = tokenizer.unk_token
    tokenizer.save_pretrained(encoder)
    rows = []
    for number in range(60):
        level = number % 3
        reply = ("study harder", "take care", "i am so sorry")[level]
        row = {"seeker_post": f"i failed exam {number}", "response_post": f"{reply} {number}"}
        shown = {mechanism: [reply] if level else [] for mechanism in MECHANISMS}
        rows.append(row | dict.fromkeys(MECHANISMS, level) | {"rationales": shown})
    data = written(folder / "labelled.jsonl", rows)
    return {
        "data": data, "adapt_data": data, "adapt_steps": 4, "encoder": str(encoder), "rank": 2,
        "batch_size": 8, "epochs": 4, "evals_per_epoch": 4,
    }  # fmt: skip


def partner_toy(folder: Path) -> dict[str, Any]:
    """A warm start of 4 steps and 16 of reinforcement learning, on a tiny language model."""
    from tests.recipes.train.partner.toys import ROWS, SETTINGS
    from tests.tiny_lm import write_tiny_llama

    model, data = write_tiny_llama(folder / "model"), written(folder / "rows.jsonl", ROWS)
    own = {"model": str(model), "data": data}
    return SETTINGS | own | {"warm_steps": 4, "steps": 16, "save_every": 1}


COSTLY = (
    "accelerate.utils",
    "matplotlib.pyplot",
    "peft",
    "sentence_transformers",
    "sklearn.linear_model",
    "transformers.models.llama.modeling_llama",
)
"""What a start spends its time on."""

TOYS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "identifier": identifier_toy,
    "partner": partner_toy,
}


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


class Process(Protocol):
    """What is used of a subprocess.Popen."""

    @property
    def args(self) -> Any: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def kill(self) -> None: ...


class Copy:
    """A copy of this process, with all that it has imported, which runs a script and ends."""

    def __init__(self, args: list[str], errors: int) -> None:
        self.args = args
        self.code: int | None = None
        self.number = os.fork()
        if not self.number:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(errors, 2)
            sys.argv = args
            os._exit(self._run())

    def _run(self) -> int:
        try:
            runpy.run_path(self.args[0], run_name="__main__")
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else bool(stop.code)
        except BaseException:
            traceback.print_exc()
            return 1
        return 0

    def poll(self) -> int | None:
        if self.code is None:
            number, status = os.waitpid(self.number, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if number else None
        return self.code

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + (timeout or PATIENCE)
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.args} has not ended")
            time.sleep(0.01)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.number, signal.SIGKILL)


@dataclass
class Runs:
    """Starts of one recipe on one toy. kills: where each of them fell."""

    recipe: str
    settings: Mapping[str, Any]
    chance: random.Random
    fresh: bool = True
    kills: Counter[str] = field(default_factory=Counter)

    def start(self, output: Path, fresh: bool) -> Process:
        values = {**self.settings, "output": output}
        flags = [word for name, value in values.items() for word in (f"--{name}", str(value))]
        arguments = [str(ROOT / "train.py"), self.recipe, *flags]
        with output.with_suffix(".err").open("wb") as errors:
            if not fresh:
                return Copy(arguments, errors.fileno())
            return subprocess.Popen(
                [sys.executable, *arguments],
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    def finish(self, output: Path, fresh: bool = True) -> None:
        """Start it, and leave it alone until it ends."""
        process = self.start(output, fresh)
        try:
            ended(process, process.wait(timeout=2 * PATIENCE), output)
        finally:
            process.kill()
            process.wait()

    def kill(self, output: Path) -> bool:
        """Start it and kill it at a random moment; False where it had ended before."""
        changes = self.chance.randint(1, MOST_CHANGES)
        seconds = self.chance.uniform(0, MOST_SECONDS)
        process = self.start(output, self.fresh)
        try:
            before, quiet = state_of(output), time.monotonic()
            while changes:
                if (code := process.poll()) is not None:
                    ended(process, code, output)
                    return False
                now = state_of(output)
                if now != before:
                    before, quiet, changes = now, time.monotonic(), changes - 1
                assert time.monotonic() < quiet + PATIENCE, "it hangs"
                time.sleep(POLL_SECONDS)
            time.sleep(seconds)
            process.kill()
            if (code := process.wait()) != -signal.SIGKILL:  # it was faster
                ended(process, code, output)
                return False
        finally:
            process.kill()
            process.wait()
        self.kills[place(output)] += 1
        return True


def ended(process: Process, code: int, output: Path) -> None:
    errors = output.with_suffix(".err").read_text(errors="replace")
    assert code == 0, f"{process.args} ended with {code}:\n{errors[-3000:]}"


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with its size and time."""
    state = {}
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                found = os.stat(os.path.join(place, name))
            except OSError:  # gone since
                continue
            state[os.path.join(place, name)] = found.st_size, found.st_mtime_ns
    return state


def place(output: Path) -> str:
    """Where a kill fell, by what it left behind."""
    if any(output.rglob(".tmp-*")):
        return "while a checkpoint was written or removed"
    if any((output / name).exists() for name in ("model", "policy")):
        return "while the model was written, or afterwards"
    if any(output.glob("checkpoints/step_*")):
        return "in the training"
    return "before it, in the start or in the first stage"


DESCRIPTIONS = ("identifier.json", "policy.json", "adapter_config.json")


def left_by(output: Path) -> dict[str, Any]:
    """What must not depend on kills: weights, the settings of models, logs without times."""
    left: dict[str, Any] = {}
    for path in sorted(output.rglob("*")):
        name = str(path.relative_to(output))
        if path.name == "log.jsonl":
            rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            left[name] = [
                {k: v for k, v in row.items() if not k.startswith("seconds")} for row in rows
            ]
        elif path.suffix == ".safetensors" or path.name in DESCRIPTIONS:
            left[name] = path.read_bytes()
    return left


def differences(output: Path, whole: Path) -> list[str]:
    """The files in which a run differs from the one that was left alone."""
    ours, theirs = left_by(output), left_by(whole)
    assert any(name.endswith(".safetensors") and "checkpoints" not in name for name in theirs)
    return [
        name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", choices=TOYS, required=True)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="never copy a process")
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}  # torch is not imported yet
    os.environ |= {"TOKENIZERS_PARALLELISM": "false"}
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for module in COSTLY:
            import_module(module)
        chance, fresh = random.Random(options.seed), options.fresh or not hasattr(os, "fork")
        runs = Runs(options.recipe, TOYS[options.recipe](folder), chance, fresh)
        runs.finish(folder / "whole")
        number = 0
        while runs.kills.total() < options.kills:
            number += 1
            before, output = runs.kills.total(), folder / f"run_{number}"
            while runs.kills.total() < options.kills and runs.kill(output):
                print(f"kill {runs.kills.total()}", end="\r", file=sys.stderr, flush=True)
            runs.finish(output, fresh)  # of a run that has ended: it must change nothing
            other = differences(output, folder / "whole")
            kills = runs.kills.total() - before
            print(f"run {number}: {kills} kills, {', '.join(other) or 'the same bits'}", flush=True)
            wrong += bool(other)
    for where, count in runs.kills.most_common():
        print(f"{count:3} kills {where}")
    print(f"{options.recipe}: {runs.kills.total()} kills, {number} runs, {wrong} differ")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
