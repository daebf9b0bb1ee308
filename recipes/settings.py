"""What several recipes ask of their settings."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rewriting.errors import UserError


def check_least(config: Any, least: float, names: str) -> None:
    """Refuse numbers below `least` in the fields of these names: before anything is loaded."""
    for name in names.split():
        if not getattr(config, name) >= least:  # not <: nan is refused as well
            raise UserError(f"{name} must be {least} or more, not {getattr(config, name)}.")


def settings_of(config: Any, left_out: str) -> dict[str, Any]:
    """The settings that a run must share with the run it goes on from: all but these."""
    return {name: value for name, value in asdict(config).items() if name not in left_out.split()}
