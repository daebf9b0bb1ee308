"""Installed models: are they still what was installed, and can they be mended in place?

Beside the folder of a model lie two small things. `.NAME.checked.json` remembers size, time and
SHA-256 of every file that was read and found right, so that each is read again only when it has
changed. `.NAME.spare` is a copy of the manifest and of the small files (settings, vocabularies): a
damaged one is copied back, and only damaged weights have to be downloaded again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from rewriting.errors import UserError
from rewriting.runtime.files.disk import sha256_of, write_json
from rewriting.runtime.files.folders import MANIFEST, Damaged, Files, damage, files_of
from rewriting.runtime.files.json_files import read_json

SPARE_BYTES: Final = 16 << 20
"""Files up to this size have a spare copy."""


def installed_damage(folder: Path, edition: Mapping[str, Any], verify: bool = False) -> str | None:
    """What is wrong with an installed model, in words; None when it is whole.

    A file is read only if its size or time differ from when it was read last; `verify` reads all.
    No lock is held: another process may replace the folder meanwhile, which is damage as well.
    """
    try:
        return _damage(folder, edition, verify)
    except Damaged as found:
        return str(found)
    except OSError as error:
        name = Path(error.filename or folder).name
        return f"its file {name} cannot be read ({error.strerror or error})"


def _damage(folder: Path, edition: Mapping[str, Any], verify: bool) -> str | None:
    if problem := damage(folder, edition, checksums=verify):
        return problem
    files = files_of(folder, edition)
    if extra := _extra(folder, files):
        return f"its file {extra[0]} was not installed"
    known = _remembered(folder)
    now = {name: _seen(folder / name, sha256) for name, (_, sha256) in files.items()}
    if not verify:
        for name, (_, sha256) in files.items():
            if known.get(name) != now[name] and sha256_of(folder / name) != sha256:
                return f"its file {name} has changed (SHA-256 differs)"
    if known != now or not spare(folder).is_dir():
        remember(folder, edition)
    return None


def remember(folder: Path, edition: Mapping[str, Any]) -> None:
    """Note that a folder is whole as it stands. Where that cannot be written, it is read again."""
    files = files_of(folder, edition)
    with suppress(OSError, UserError):
        seen = {name: _seen(folder / name, sha256) for name, (_, sha256) in files.items()}
        _copy_spare(folder, files)
        write_json(checked_file(folder), seen)


def mend(folder: Path, edition: Mapping[str, Any]) -> bool:
    """Put the spare copies in place of what is damaged; whether the folder is whole again.

    Call it under a lock on the folder.
    """
    try:
        files = files_of(spare(folder), edition)
        for name, (size, sha256) in files.items():
            path, copy = folder / name, spare(folder) / name
            if path.is_file() and path.stat().st_size == size and sha256_of(path) == sha256:
                continue
            if not copy.is_file() or sha256_of(copy) != sha256:
                return False
            _replace(copy, path)
        _replace(spare(folder) / MANIFEST, folder / MANIFEST)
        for name in _extra(folder, files):
            (folder / name).unlink()
    except (Damaged, OSError):  # a folder in the place of a file, a disk that cannot be written
        return False
    return installed_damage(folder, edition, verify=True) is None


def spare(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.spare")


def checked_file(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.checked.json")


def _seen(path: Path, sha256: str) -> list[Any]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, sha256]


def _remembered(folder: Path) -> dict[str, Any]:
    try:
        return dict(read_json(checked_file(folder)))
    except (OSError, ValueError, TypeError):
        return {}


def _extra(folder: Path, files: Files) -> list[str]:
    """Files that nobody installed: a library might follow them.

    Hidden ones (.DS_Store, .nfs…) are made by systems, and no library reads them.
    """
    found = (path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())
    visible = (path.as_posix() for path in found if not any(p.startswith(".") for p in path.parts))
    return sorted(name for name in visible if name not in files and name != MANIFEST)


def _copy_spare(folder: Path, files: Files) -> None:
    temporary = folder.with_name(f".{folder.name}.spare-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    for name in (MANIFEST, *(name for name, (size, _) in files.items() if size <= SPARE_BYTES)):
        (temporary / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / name, temporary / name)
    shutil.rmtree(spare(folder), ignore_errors=True)
    try:
        temporary.replace(spare(folder))
    finally:  # another process may have been faster
        shutil.rmtree(temporary, ignore_errors=True)


def _replace(source: Path, target: Path) -> None:
    """Copy a file so that a reader sees the old one or the new one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        shutil.copyfile(source, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
