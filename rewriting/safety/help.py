"""Where people find help: one list, `help.toml`, for commands and study pages alike."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).parent / "help.toml"


def _resources() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def emergency_numbers() -> str:
    """The numbers and where they hold: `112 in Europe, 911 in …`."""
    places: dict[str, list[str]] = {}
    for place, number in _resources()["emergency"].items():
        places.setdefault(number, []).append(place)
    return "; ".join(f"{number} in {', '.join(where)}" for number, where in places.items())


HELPLINES: Final[str] = _resources()["helplines"]
HELP: Final = f"""\
If you or someone near you may be in danger, call your local emergency number now.
({emergency_numbers()}.)
Find a free, confidential helpline in your country at {HELPLINES}
Talk to someone you trust, or to a doctor. You do not have to go through this alone."""
"""What is shown with everything that is held back. `--help-text` puts another text in its place."""
