"""How the pages read: their lines, tables and words, and the files they send people to."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.hooks.test_links import ROOT

PAGES = sorted(
    [
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("rewriting/sample/*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    ]
)


def name_of(page: Path) -> str:
    """A page's path inside the repository: results and notes share their names with guides."""
    return str(page.relative_to(ROOT))


BLOCK = re.compile(r"^```.*?^```", re.M | re.S)
CODE_OR_LINK = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)|\]\([^)]*\)")
MOST_COLUMNS = 8
MOST_LINES_OF_README = 80

OLD_WORDS = {
    r"\bshipped anew\b": "released again, with what changed",
    r"\bprice of (leaving|the KL)\b|\bleaving it costs\b": "the KL penalty",
    r"\bthe price (doubles|halves)\b|\badapting the price\b|\bKL price\b": "the KL weight",
    r"\bpaid once per (episode|response)\b": "subtracted once",
    r"\b(had|has|have) a say\b": "influenced; say which choice saw which data",
    r"\bunasked\b": "unless asked to",
    r"\b[Ii]ts rows of a step\b": "examples per optimizer step",
    r"\bOf (ppo|sft|grpo):": "a whole sentence that names the algorithm",
    r"\bAt its peak\b": "the peak learning rate",
    r"\b[Tt]he (wound|cure)\b": "what was wrong, what mended it",
    r"\b(process|row|exchange|response|pair|example)\((e?s)\)": "a number with its noun",
    r"\bname them with targets\b": "lora_layers",
    r"\buses of each sample\b": "how many epochs are trained on each batch (inner epochs)",
    r"\brecipes/(cli_help|seeds|steps)\.py\b": "the file's name as it is now",
}
"""A pattern → what to write instead. Neither docs nor help texts use these words any more."""


def prose(page: Path) -> str:
    """A page without its blocks of code; lines keep their numbers."""
    text = page.read_text(encoding="utf-8")
    return BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_are_short_enough_to_read(page: Path) -> None:
    for number, line in enumerate(prose(page).splitlines(), start=1):
        if not line.lstrip().startswith("|"):
            # A piece of code or a link is not cut in two: only the words around it count.
            words = CODE_OR_LINK.sub("", line)
            assert len(line) <= 100 or len(words) <= 50, f"{name_of(page)}, line {number}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tables_are_narrow_enough_to_read(page: Path) -> None:
    for number, line in enumerate(prose(page).splitlines(), start=1):
        if line.startswith("|"):
            columns = len(re.findall(r"(?<!\\)\|", CODE_OR_LINK.sub("", line))) - 1
            assert columns <= MOST_COLUMNS, f"{name_of(page)}, line {number}"


def old_words(text: str) -> list[str]:
    """The old words in a text, and what to write instead."""
    found = [(re.search(pattern, text), better) for pattern, better in OLD_WORDS.items()]
    return [f"{match[0]!r}: {better}" for match, better in found if match]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_have_no_old_words(page: Path) -> None:
    assert old_words(prose(page)) == []


def test_help_has_no_old_words() -> None:
    from docs.hooks.reference import commands_page, settings_page

    assert old_words(commands_page() + settings_page()) == []


def test_old_words_are_found() -> None:
    assert old_words("An agent, shipped anew.") == [
        "'shipped anew': released again, with what changed"
    ]
    assert old_words("Steers the KL by adapting the price.")
    assert old_words("The price of a coffee.") == []


def test_the_glossary_is_in_order_and_says_something_of_each_word() -> None:
    rows = re.findall(
        r"^\| (.+?) \| (.+) \|$", (ROOT / "docs/glossary.md").read_text("utf-8"), re.M
    )
    words = [word for word, _ in rows if word not in ("word", "---")]
    assert words == sorted(words, key=str.casefold)
    wanted = "exchange edit rewrite keep span mechanism level rationale carrier contrast sense gate"
    assert set(wanted.split()) | {"reader", "bank", "audit", "probe"} <= set(words)


def test_every_file_of_where_would_i_change_is_there() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = page.split("## Where would I change …\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (?!what|---)(.+?) \| (.+) \|$", section, re.M)
    assert len(rows) == 12
    for what, files in rows:
        named = re.findall(r"`((?:rewriting|rewards|policies|recipes|configs)/[\w./]*)`", files)
        assert named, what
        assert [name for name in named if not (ROOT / name).exists()] == [], what
        if what not in ("a fourth mechanism", "Spanish"):
            assert len(named) <= 3 or "An agent that shall use it" in files, what


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES_OF_README


def test_messages_have_no_old_words() -> None:
    """What the code says: help, errors, lines of logs, docstrings."""
    said = []
    for package in ("rewriting", "rewards", "policies", "recipes"):
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    said += [f"{file.name}: {found}" for found in old_words(node.value)]
    assert said == []
