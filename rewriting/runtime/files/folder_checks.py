"""Folders that somebody else made: nothing in them may run, lead out of them or take all memory.

transformers, sentence-transformers and PEFT follow what the settings in a folder say: which Python
file defines a model, which module is imported, where the weights lie, how many layers there are.
Here a folder is looked through before any of them sees it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from rewriting.errors import UserError
from rewriting.runtime.files.json_files import LARGEST_SETTINGS, read_json, shown

CODE: Final = frozenset([".py", ".pyc", ".pyd", ".so", ".dll", ".dylib", ".pkl", ".pickle"])
RUNS_CODE: Final = ("auto_map", "custom_pipelines", "megatron_config")
"""Settings that name code, which the libraries would import."""
OUR_MODULES: Final = "sentence_transformers."
NOT_OPENED: Final = frozenset(
    f"{name}_file" for name in ("special_tokens_map", "added_tokens", "tokenizer_config")
)
"""Paths that transformers itself writes into tokenizer_config.json, and does not read there."""
VOCABULARIES: Final = ("tokenizer.json", "vocab.json")
"""Files of many megabytes, which are read by a parser with bounds of its own."""
LARGEST_VOCABULARY: Final = 512 << 20
MOST_FILES: Final = 10_000
SIZES: Final = re.compile(r"size|dim|width|n_embd|n_inner|position|window|^d_|length")
COUNTS: Final = re.compile(r"layer|heads|n_head|experts|blocks|depth")
LARGEST_SIZE: Final = 20_000_000
LARGEST_COUNT: Final = 10_000


def check_folder(folder: Path) -> None:
    """Raise unless a folder of a model or a policy can be handed to the libraries."""
    for path in _files(folder):
        if path.suffix.lower() in CODE:
            raise _refusal(folder, f"{path.name} is code, and no code of a folder is run")
        if path.suffix.lower() == ".json":
            _check_json(folder, path)


def _files(folder: Path) -> Iterator[Path]:
    """The plain files below a folder. Hidden ones (.git, .cache) are no library's business."""
    waiting, count = [folder], 0
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                count += 1
                if count > MOST_FILES:
                    raise _refusal(folder, f"it holds more than {MOST_FILES:,} files")
                if entry.name.startswith("."):
                    continue
                if entry.is_symlink():
                    raise _refusal(folder, f"{entry.name} is a link; copy the files (cp -rL)")
                if entry.is_dir():
                    waiting.append(Path(entry.path))
                elif entry.is_file():
                    yield Path(entry.path)
                else:
                    raise _refusal(folder, f"{entry.name} is no plain file")


def _check_json(folder: Path, path: Path) -> None:
    if path.name in VOCABULARIES and path.stat().st_size > LARGEST_SETTINGS:
        if path.stat().st_size > LARGEST_VOCABULARY:
            raise _refusal(folder, f"{path.name} has {path.stat().st_size:,} bytes")
        return
    try:
        value = read_json(path)
    except (OSError, ValueError) as error:
        raise _refusal(folder, f"{path.name} cannot be read ({error})") from error
    for where, one in _settings(value):
        if where in RUNS_CODE and one:
            raise _refusal(folder, f"{path.name} names code to run ({where})")
    problem = None
    if path.name == "config.json":
        problem = next(filter(None, (_too_large(*one) for one in _settings(value))), None)
    elif path.name == "modules.json":
        problem = _bad_modules(value)
    elif path.name.endswith(".index.json"):
        files = value.get("weight_map") if isinstance(value, dict) else None
        problem = _bad_paths(files.values() if isinstance(files, dict) else [None])
    elif path.name == "tokenizer_config.json" and isinstance(value, dict):
        problem = _bad_vocabulary(value)
    if problem:
        raise _refusal(folder, f"{path.name}: {problem}")


def _settings(value: Any) -> Iterator[tuple[str, Any]]:
    """Every name with its value, however deep it stands; `read_json` has bounded that."""
    if isinstance(value, dict):
        yield from value.items()
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _settings(one)


def _too_large(name: str, value: Any) -> str | None:
    if not isinstance(value, int | float):
        return None
    most = LARGEST_COUNT if COUNTS.search(name) else LARGEST_SIZE if SIZES.search(name) else None
    return f"{name} is {shown(value)}" if most is not None and not value <= most else None


def _bad_modules(value: Any) -> str | None:
    """sentence-transformers imports the class of each module, from the folder or from anywhere."""
    listed = value if isinstance(value, list) else [None]
    rows = [row if isinstance(row, dict) else {} for row in listed]
    for row in rows:
        kind = row.get("type")
        if not isinstance(kind, str) or not kind.startswith(OUR_MODULES):
            return f"{shown(kind)} is no module of sentence-transformers"
    return _bad_paths(row.get("path") for row in rows)


def _bad_paths(paths: Any) -> str | None:
    for path in paths:
        if not isinstance(path, str) or leads_out(path):
            return f"{shown(path)} leads out of the folder"
    return None


def _bad_vocabulary(value: dict[str, Any]) -> str | None:
    """transformers opens the files that a tokenizer names as its vocabulary, wherever they are."""
    for name, path in value.items():
        opened = name.endswith("_file") and name not in NOT_OPENED and path is not None
        if opened and (problem := _bad_paths([path])):
            return f"{problem}; remove {shown(name)} from the file"
    return None


def leads_out(path: str) -> bool:
    """Whether a path in a file names something outside the folder that the file is in."""
    parts = PurePosixPath(path)
    return parts.is_absolute() or ".." in parts.parts or "\\" in path or ":" in path


def _refusal(folder: Path, reason: str) -> UserError:
    return UserError(f"{folder} was refused: {reason}.")
