"""How every report becomes one self-contained file: frame.html, style.css, and a page in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def filled(
    name: str,
    folder: Path = HERE,
    *,
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **values: Any,
) -> str:
    """A template of the folder, which extends frame.html, with its values. All text is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([folder, HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters or {}
    style = (HERE / "style.css").read_text(encoding="utf-8")
    return environment.get_template(name).render(style=style, **values)
