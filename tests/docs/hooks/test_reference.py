"""The reference pages hold what the code holds, and say something about it."""

import re
from dataclasses import fields
from importlib import import_module

import pytest

from docs.hooks import reference
from recipes.entry import EVALUATION, TRAINING


def section(page: str, title: str) -> str:
    return page.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_field_of_every_recipe() -> None:
    page = reference.settings_page()
    for program, recipes in (("train.py", TRAINING), ("evaluate.py", EVALUATION)):
        for name, place in recipes.items():
            rows = re.findall(
                r"^\| `(\w+)` \|.*\| (.*) \|$", section(page, f"{program} {name}"), re.M
            )
            assert [row[0] for row in rows] == [f.name for f in fields(import_module(place).Config)]
            assert all(meaning for _, meaning in rows)


def test_every_command_with_its_options() -> None:
    page = reference.commands_page()
    titles = re.findall(r"^## (.+)$", page, re.M)
    assert {"rewriting rewrite", "rewriting ab create", "rewriting models fetch"} <= set(titles)
    assert "`--num-candidates`" in section(page, "rewriting rewrite")
    assert "`SEEKER`" not in page  # an option, not an argument


def test_every_measure_and_reward() -> None:
    from rewards.named import BUILT_INS
    from rewriting.measures.rewrites import MEASURES

    page = reference.measures_page()
    assert [name for name in MEASURES if f"| `{name}` |" not in page] == []
    assert "](" not in page
    page = reference.rewards_page()
    assert re.findall(r"^## (\w+)$", page, re.M) == list(BUILT_INS)
    assert "`reply`" in section(page, "contrast")


def test_every_python_name_has_a_signature_and_a_docstring() -> None:
    page = reference.python_page()
    for place, names in reference.PYTHON.items():
        for name in names:
            text = section(page, f"{place}.{name}")
            assert f"from {place} import {name}\n" in text
            assert text.split("```")[2].strip(), f"{place}.{name} has no docstring"


@pytest.mark.parametrize("make", reference.PAGES.values())
def test_tables_are_whole(make) -> None:  # type: ignore[no-untyped-def]
    for table in re.findall(r"(?:^\|.*\n)+", make(), re.M):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1, table


def test_bounds_are_shown_in_symbols() -> None:
    assert reference.bounds({"least": 0, "greatest": 1, "above": None}) == "≥ 0, ≤ 1"
    assert reference.bounds({"above": 0}) == "> 0"
    assert reference.bounds({}) == ""
