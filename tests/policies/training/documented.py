"""What a page of the docs explains of log.jsonl, against what a run has logged."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.test_docs import first_column

ROOT = Path(__file__).parents[3]


def figures_of(page: str) -> list[str]:
    """The figures that a page explains. A star stands for names that depend on the run."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [name.strip("`") for name in first_column(text, "in `log.jsonl`")]


def check_figures(logged: Iterable[str], page: str) -> None:
    """Every figure is explained, and no figure is explained that is not logged."""
    patterns = {name: re.escape(name).replace(r"\*", "[^/]+") for name in figures_of(page)}
    used = set()
    for name in logged:
        found = [n for n, pattern in patterns.items() if re.fullmatch(pattern, undev(name))]
        assert found, f"{name} is not on {page}"
        used |= {found[0]} | ({"dev/*"} if name != undev(name) else set())
    assert used == set(patterns)


def undev(name: str) -> str:
    """Figures of dev are the same ones."""
    return name.removeprefix("dev/")
