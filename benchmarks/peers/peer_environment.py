"""An environment of its own for a peer whose libraries are older than ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

TRL = (
    "trl==0.11.4",
    "transformers==4.45.2",
    "peft==0.13.2",
    "accelerate==1.0.1",
    "datasets==3.0.2",
    "numpy==1.26.4",
    "pyarrow==19.0.1",
    "pandas==2.2.3",
    "rich==15.0.0",
    "tyro==1.0.16",
)
"""The last TRL with PPO for encoder-decoders, and what it still runs with."""


def python_with(folder: Path, pins: Sequence[str]) -> Path:
    """The Python of an environment in `folder` with these pins, made once, and our build of torch.

    It counts as made when `pins.txt` stands in it; other pins than there, and it is made anew.
    """
    wanted = [f"torch=={version('torch')}", *pins]
    marker, python = folder / "pins.txt", folder / "bin" / "python"
    if marker.is_file() and marker.read_text().split() == wanted:
        return python
    print(f"making an environment with {pins[0]} in {folder} (once)", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
    marker.write_text("\n".join(wanted) + "\n")
    return python
