"""A toy of a named model, in a wheel of its own."""

from pathlib import Path
from typing import Any

from rewriting.runtime.files.disk import sha256_of
from rewriting.runtime.models import convert
from rewriting.runtime.models import named as models
from rewriting.runtime.models.assembly import Wheel, WheelFiles

MEMBERS = {"tiny/config.json": "config.json", "tiny/model.safetensors": "model.safetensors"}
CONTENT = {"tiny/config.json": b"{}", "tiny/model.safetensors": b"w", "tiny/code.py": b"1/0"}


def named(wheel: Path, version: str = "1.0", **changes: Any) -> models.NamedModel:
    fields: dict[str, Any] = {
        "name": "tiny",
        "description": "a toy",
        "license": "MIT",
        "hub_id": "org/tiny",
        "contents": WheelFiles(Wheel("tiny", version, sha256_of(wheel)), MEMBERS),
        "size": wheel.stat().st_size,
        "disk_size": 3_000_000,
        "convert": convert.copied_folder,
    }
    return models.NamedModel(**{**fields, **changes})


INSTALLED = {"tiny", ".tiny.lock", ".tiny.checked.json", ".tiny.spare"}


def visible(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()}
