"""The YAML files that come with the package: settings of recipes, and launch files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rewriting.errors import UserError
from rewriting.runtime.loading import did_you_mean

FOLDER: Final = Path(__file__).parents[2] / "configs"


def recipe_configs() -> dict[str, Path]:
    """Name → file, such as `partner`: what `--config` of a recipe takes."""
    return {file.stem: file for file in sorted(FOLDER.glob("*.yaml"))}


def launch_configs() -> dict[str, Path]:
    """Name → file, such as `launch/gpus`: what `--config_file` of accelerate can be given."""
    return {f"launch/{file.stem}": file for file in sorted(FOLDER.glob("launch/*.yaml"))}


def config_file(name: str, packaged: Mapping[str, Path]) -> Path:
    """The file of that path, or else the packaged one of that name."""
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if name.removesuffix(".yaml") in packaged:
        return packaged[name.removesuffix(".yaml")]
    raise UserError(
        f"there is no config {name!r}, as a file or by name. {did_you_mean(path.stem, packaged)}"
        f"Names: {', '.join(packaged)}."
    )
