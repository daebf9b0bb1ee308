"""What a run has left in its folder, read without loading anything: the settings it ran with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewriting.runtime.files.json_files import parse_json, read_json, read_text

SETTINGS = "settings.json"


def settings_of_run(output: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The settings in the newest checkpoint of each loop in a folder, and in its settings.json.

    What cannot be read is passed over: loading the checkpoint knows what is wrong with it.
    """
    for folder in (output, *sorted(output.glob("*"))):
        steps = sorted((folder / "checkpoints").glob("step_*"))
        for step in steps[-1:]:
            yield from _settings(step / "state.json", folder)
    yield from _settings(output / SETTINGS, output)


def _settings(file: Path, folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    if not file.is_file():
        return
    try:
        content = read_json(file) if file.name == SETTINGS else parse_json(read_text(file))
        found = content if file.name == SETTINGS else content["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    if isinstance(found, dict):
        yield folder, found
