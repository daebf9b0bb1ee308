"""A wheel built from this checkout, in an environment of its own that needs no network."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

from rewriting.distribution import PACKAGES

ROOT = Path(__file__).parent.parent
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")
BUILD = "import setuptools.build_meta as build, sys; print(build.build_wheel(sys.argv[1]))"


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy of what it is built from: the build leaves files behind."""
    source, wheels = folder / "source", folder / "wheels"
    wheels.mkdir()
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, source / package, ignore=ignored)
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-c", BUILD, str(wheels)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, env=bare())
    (wheel,) = wheels.glob("*.whl")
    return wheel


class Environment:
    """A fresh environment with the wheel, which finds the libraries of the one that tests run in.

    The folder of libraries is named in a .pth file. Python reads no .pth file in there, so that an
    editable install of this checkout stays out, and the wheel comes first.
    """

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.bin = folder / "bin"
        names = {"base": str(folder), "platbase": str(folder)}
        self.libraries = Path(sysconfig.get_path("purelib", "venv", names))
        libraries = sysconfig.get_path("purelib")
        (self.libraries / "libraries.pth").write_text(f"{libraries}\n")
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python")]
        options = ["install", "--no-deps", "--no-index", "--no-compile", "--quiet", str(wheel)]
        options.insert(1, "--ignore-installed")
        subprocess.run([*pip, *options], check=True, cwd=folder, env=bare())

    def run(self, *command: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment outside the checkout."""
        program, *arguments = command
        return subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=cwd,
            env=bare(),
            capture_output=True,
            text=True,
            **options,
        )


def bare() -> dict[str, str]:
    """The environment variables without those that lead Python to this checkout."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
