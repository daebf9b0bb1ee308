"""policy.json: what a trained policy is, besides its weights, with the checksums of these.

It is written last: where it stands, the rest is complete. What it says is checked before anything
is built by it, and the weights are those that were saved or they are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, TypeVar

from rewriting.errors import UserError
from rewriting.runtime.files.disk import sha256_of, write_json
from rewriting.runtime.files.folder_checks import check_folder, leads_out
from rewriting.runtime.files.json_files import cut, read_json, shown

FILE: Final = "policy.json"
CHECKSUMS: Final = "sha256"
WHOLE_MODEL: Final = "model"
"""The folder of a policy that is a whole model: tokenizer and configuration count as weights."""
ADAPTER: Final = "adapter_config.json"
"""It scales the weights of an adapter (lora_alpha) and says which layers they change."""
LONGEST_NAME: Final = 200
KINDS: Final[Mapping[type, Any]] = {int: int, float: int | float, str: str, tuple: list}
T = TypeVar("T")


def write_policy(folder: Path, kind: str, settings: Any, **named: str) -> None:
    """Describe the policy whose weights are in a folder. named: the model, where no setting is."""
    checksums = {CHECKSUMS: weights_of(folder)}
    write_json(folder / FILE, {"kind": kind} | named | asdict(settings) | checksums)


def weights_of(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file that makes the policy say what it says."""
    files = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.as_posix(): sha256_of(folder / path)
        for path in files
        if path.suffix == ".safetensors" or path.name == ADAPTER or path.parts[0] == WHOLE_MODEL
    }


def read_policy(
    folder: Path, kind: str, settings: type[T], *, called: str, named: str = ""
) -> tuple[str, T]:
    """What a folder says under `named`, and its settings; one line where it is no such policy.

    called: what the policy is, in an error message.
    """
    path = folder / FILE
    check_folder(folder)
    try:
        found = dict(read_json(path))
        if found.pop("kind", None) != kind:
            raise ValueError("it is of another kind")
        name = found.pop(named) if named else ""
        if not isinstance(name, str):
            raise TypeError(f"{named} is {shown(name)}, not a name")
        checksums = found.pop(CHECKSUMS, {})
        described = _filled(settings, found)
        damaged = _damaged(folder, checksums)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(f"{path} does not describe {called} ({cut(reason)}).") from error
    if damaged:
        raise UserError(f"{folder / damaged} is missing or damaged. Get the policy again.")
    return name, described


def check_weights(folder: Path, described: Mapping[str, Any]) -> None:
    """Raise where a file that makes the policy what it is differs from the one that was saved."""
    checksums = described.get(CHECKSUMS, {})
    try:
        damaged = _damaged(folder, checksums)
    except (ValueError, AttributeError, TypeError) as error:
        reason = cut(str(error))
        raise UserError(f"the checksums in {folder / FILE} are damaged ({reason}).") from error
    if damaged:
        raise UserError(f"{folder / damaged} is missing or damaged. Get the policy again.")


FORMER_NAMES = {"targets": "lora_layers"}
"""What settings were called in folders of release 0.1."""


def _filled(settings: type[T], found: Mapping[str, Any]) -> T:
    """The settings with the values of a file, each of the kind that its default is of."""
    defaults = {one.name: one.default for one in fields(settings)}  # type: ignore[arg-type]
    found = {FORMER_NAMES.get(name, name): value for name, value in found.items()}
    if unknown := sorted(found.keys() - defaults.keys()):
        raise ValueError(f"unknown settings {', '.join(unknown)[:80]}")
    for name, value in found.items():
        fits = isinstance(value, KINDS[type(defaults[name])]) and not isinstance(value, bool)
        if not fits or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"{name} is {shown(value)}")
        if isinstance(value, list) and not all(isinstance(one, str) for one in value):
            raise ValueError(f"{name} is {shown(value)}")
    return settings(**found)


def _damaged(folder: Path, checksums: Mapping[str, str]) -> str | None:
    """The first file that is not what was saved. Folders of earlier releases have no checksums."""
    for name, sha256 in checksums.items():
        if leads_out(name):
            raise ValueError(f"{shown(name)} leads out of the folder")
        if len(name) > LONGEST_NAME:  # which the system refuses, or which fills a page
            raise ValueError(f"{shown(name)} is no name of a file")
        if not (folder / name).is_file() or sha256_of(folder / name) != sha256:
            return name
    return None
