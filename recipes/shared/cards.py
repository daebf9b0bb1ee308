"""What lies beside trained weights: the settings and figures as JSON, and a card that says them."""

from __future__ import annotations

import dataclasses
import json
import logging
import shlex
from pathlib import Path
from typing import Any

from rewriting.runtime.files.disk import disk_errors, write_json

logger = logging.getLogger(__name__)


def command(recipe: str, config: Any) -> str:
    """The command line that a config came from: the fields that differ from their defaults."""
    flags = []
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name != "output" and value != field.default:
            text = json.dumps(value) if isinstance(value, dict) else str(value)
            flags.append(f"--{field.name} {shlex.quote(text)}")
    return " ".join(["python train.py", recipe, *flags])


def write_card(folder: Path, config: Any, figures: dict[str, Any], text: str) -> None:
    """Write results.json and README.md beside the weights in `folder`."""
    settings = {k: v for k, v in dataclasses.asdict(config).items() if k != "output"}
    write_json(folder / "results.json", {"settings": settings, "figures": figures})
    with disk_errors(folder):
        (folder / "README.md").write_text(text, encoding="utf-8")
    logger.info("saved to %s: weights, results.json and a card", folder)
