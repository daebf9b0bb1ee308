"""The two files of a model that we have trained: settings in JSON, and weights.

The settings are written last and hold two checksums, of the weights and of themselves, so that
damage to either is said in one line and never used. Folders of earlier releases have none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rewriting.errors import UserError
from rewriting.runtime.files.disk import sha256_of, write_json
from rewriting.runtime.files.json_files import cut, read_json

CHECKSUM: Final = "checksum"
WEIGHTS: Final = "weights_sha256"
REMEDY: Final = "Get the model again, or train it again."


def write_model_settings(
    folder: Path, name: str, settings: Mapping[str, Any], *, weights: str
) -> None:
    """Describe the model whose weights are in a folder already."""
    content = {**settings, WEIGHTS: sha256_of(folder / weights)}
    write_json(folder / name, {**content, CHECKSUM: _digest(content)})


def read_model_settings(
    folder: Path, name: str, *, weights: str, called: str, checked: bool = True
) -> dict[str, Any]:
    """The settings in a folder; one line where they or the weights are not those that were saved.

    called: what the model is, in an error message. checked: False leaves the weights unread, for a
    question that only the settings answer.
    """
    path = folder / name
    if not path.is_file() or not (folder / weights).is_file():
        raise UserError(f"{folder} holds no {called}: it needs {name} and {weights}.")
    try:
        settings = read_json(path)
        if not isinstance(settings, dict):
            raise ValueError("it is no object of settings")  # noqa: TRY004 (of a file)
        checksum = settings.pop(CHECKSUM, None)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is damaged ({cut(str(error))}). {REMEDY}") from error
    if checksum is not None and checksum != _digest(settings):
        raise UserError(
            f"{path} has changed since it was saved. {REMEDY} If you have changed it yourself, "
            f'take its line "{CHECKSUM}" out.'
        )
    expected = settings.pop(WEIGHTS, None)
    if checked and expected is not None and expected != sha256_of(folder / weights):
        raise UserError(f"{folder / weights} has changed since it was saved. {REMEDY}")
    return settings


@contextmanager
def one_line_where_unfit(path: Path) -> Iterator[None]:
    """Say in one line that a model cannot be built from a file of settings."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        if _is_of_the_machine(error):
            raise
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        first = (reason.strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"{path} does not describe a model ({cut(first)}). {REMEDY}") from error


def _is_of_the_machine(error: Exception) -> bool:
    import torch

    return isinstance(error, torch.OutOfMemoryError)


def _digest(settings: Mapping[str, Any]) -> str:
    """Of the settings as they will be read: JSON knows no tuples, and no keys but texts."""
    read = json.loads(json.dumps(settings))
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()
