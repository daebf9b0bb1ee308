"""How the tests run a script of benchmarks/, and what they train in it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, Any] = {
    "from_policy": "",
    "warm_steps": 1,
    "rewards": "{repetition: {weight: 1.0, n: 1}, edit_size: 0.5}",
    "rank": 2,
    "max_new_tokens": 6,
    "max_prompt_tokens": 160,
}
"""Of `train.py partner`; `model` is to be added."""


def run_script(name: str, *arguments: str, output: Path) -> tuple[str, dict[str, Any]]:
    """What a script prints, and the JSON that it writes."""
    command = [sys.executable, f"benchmarks/{name}", *arguments, "--json", str(output)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout, json.loads(output.read_text())
