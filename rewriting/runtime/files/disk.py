"""Writing files so that a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rewriting.errors import UserError


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Say a full disk or a forbidden folder in one line that names the path."""
    from safetensors import SafetensorError  # which its writer raises instead of an OSError

    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}.") from error
    except SafetensorError as error:
        raise UserError(f"cannot write {path}: {error}.") from error


def fsync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def fsync_folder(path: Path) -> None:
    """Make renames in a folder survive a power cut. A no-op where folders cannot be opened."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, value: Any) -> None:
    """Write JSON by way of a temporary file beside the target."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=False, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
