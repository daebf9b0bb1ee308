"""Folders that are either whole or absent, with a manifest that tells which.

A folder is filled under a temporary name beside its target, flushed to the disk, and renamed.
Whoever is killed on the way leaves a temporary, never half a folder under the real name.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rewriting.errors import UserError
from rewriting.runtime.files.disk import disk_errors, fsync_file, fsync_folder, sha256_of
from rewriting.runtime.files.json_files import parse_json, read_text

if TYPE_CHECKING:
    from filelock import BaseFileLock

MANIFEST = "manifest.json"
LOCK: Final = ".lock"
"""The lock in a folder. It is no content: manifests and checksums pass over it."""
Files = dict[str, tuple[int, str]]  # name → bytes, SHA-256


class Damaged(Exception):
    """A folder does not match its manifest; the message says how."""


@contextmanager
def locked(target: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """One process at a time for `target`; `on_wait` is called when another has it.

    The system releases the lock of a process that dies.
    """
    from filelock import FileLock, Timeout

    target.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_file(target))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def only_writer(target: Path, *, inside: bool = False) -> Iterator[None]:
    """Refuse to go on while another process writes to `target`, a file or a folder.

    inside: the lock stands in the folder `target`, which is made, so that its parent need not be
    writable; otherwise the lock stands beside `target`. It is gone afterwards, with the folder that
    was made for it if that is empty. The system releases the lock of a process that dies.
    """
    from filelock import FileLock, Timeout

    file = target / LOCK if inside else lock_file(target)
    made = not file.parent.exists()
    with disk_errors(target):
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(file)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise UserError(
                f"another process is writing {target}. Wait for it, or name another output."
            ) from error
    try:
        yield
    finally:
        _remove_and_release(lock, file)
        if inside and made:
            with suppress(OSError):  # something was written
                target.rmdir()


def _remove_and_release(lock: BaseFileLock, file: Path) -> None:
    """Remove the file while the lock is held: afterwards it may be the lock of another process.

    Who has opened the file meanwhile finds that it has no name any more, and starts over. Windows
    removes no open file; there filelock does it when it releases.
    """
    if os.name != "nt":
        with suppress(OSError):
            file.unlink()
    lock.release()


def lock_file(target: Path) -> Path:
    return target.parent / f".{target.name}.lock"


@contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """A temporary folder on the file system of `target`; gone afterwards, whatever happens.

    Call it under a lock on `target`: other temporaries of the same target then belong to processes
    that died, and are removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}.tmp-"
    for leftover in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write `facts`, and size and SHA-256 of every file of the folder, into its manifest."""
    files = {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / LOCK
    }
    text = _manifest_text({**facts, "files": files})
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def _manifest_text(content: Mapping[str, Any]) -> str:
    """The manifest with a checksum of its own: a flipped bit in it shows like any other."""
    rest = {key: value for key, value in content.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return json.dumps({**rest, "checksum": digest}, indent=2) + "\n"


def damage(folder: Path, edition: Mapping[str, Any], checksums: bool = False) -> str | None:
    """What is wrong with an installed folder, in words; None when it is whole.

    Sizes are compared always (milliseconds), contents only when `checksums` asks for it.
    """
    try:
        files = files_of(folder, edition)
    except Damaged as found:
        return str(found)
    for name, (expected, sha256) in files.items():
        path = folder / name
        if not path.is_file():
            return f"its file {name} is missing"
        size = path.stat().st_size
        if size != expected:
            return f"its file {name} has {size:,} bytes instead of {expected:,}"
        if checksums and sha256_of(path) != sha256:
            return f"its file {name} has changed (SHA-256 differs)"
    return None


def files_of(folder: Path, edition: Mapping[str, Any]) -> Files:
    """The files that the manifest of a folder lists; `Damaged` where it cannot be believed."""
    try:
        text = read_text(folder / MANIFEST)
        manifest = parse_json(text)
        files = {
            str(name): (int(expected["bytes"]), str(expected["sha256"]))
            for name, expected in manifest["files"].items()
        }
    except FileNotFoundError:
        raise Damaged("it is not installed") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"its {MANIFEST} is not readable") from error
    if text != _manifest_text(manifest):
        raise Damaged(f"its {MANIFEST} has changed")
    for key, value in edition.items():
        if manifest.get(key) != value:
            raise Damaged(f"its {key} is {manifest.get(key)!r}, and {value!r} is needed")
    return files


def publish(folder: Path, target: Path, temporary: Path) -> None:
    """Put the finished `folder` at `target`; an old one there goes with `temporary`."""
    for path in [*folder.rglob("*"), folder]:
        if path.is_dir():
            fsync_folder(path)
        else:
            path.chmod(0o644)  # safetensors writes 0600, no use in a cache that a group shares
            fsync_file(path)
    if target.exists():
        os.rename(target, temporary / "replaced")
    os.rename(folder, target)
    fsync_folder(target.parent)
