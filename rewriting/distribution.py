"""Whether the four packages are ours: their names are common, and another distribution may have
been installed over one of them.

Each of our packages says whose it is in the first line of its `__init__.py`. Here those lines are
read, and nothing is imported, so that the check costs well under a millisecond.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rewriting.errors import UserError

DISTRIBUTION: Final = "empathic-rewriting"
PACKAGES: Final = ("rewriting", "rewards", "policies", "recipes")
ROOT: Final = Path(__file__).parent.parent


def check_packages() -> None:
    """Raise, in one line, where Python finds something else under one of our four names."""
    for name in PACKAGES:
        spec = find_spec(name)
        place = Path(spec.origin) if spec and spec.origin else None
        if place is None or place.parent.parent != ROOT or not _is_ours(place):
            found = place or (list(spec.submodule_search_locations or []) if spec else "nothing")
            raise UserError(
                f"the package {name!r} is not that of {DISTRIBUTION}: Python finds {found}"
                f"{_owners(name)}. Install {DISTRIBUTION} into an environment of its own."
            )


def _is_ours(init: Path) -> bool:
    with init.open(encoding="utf-8", errors="replace") as lines:
        return lines.readline().startswith(f"# {DISTRIBUTION}:")


def _owners(name: str) -> str:
    """Which other distributions install a package of that name. Slow, so only for the message."""
    from importlib.metadata import packages_distributions

    others = sorted(set(packages_distributions().get(name, [])) - {DISTRIBUTION})
    return f", of {', '.join(others)}" if others else ""
