"""Links lead somewhere, in the repository and in the site."""

import re
from pathlib import Path

import pytest

from docs.hooks import links
from docs.hooks.links import ROOT, copied_files, site_path, with_site_links
from docs.hooks.links import links as links_of

PAGES = [
    "README.md",
    *copied_files(),
    *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md")),
]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    plain = [re.sub(r"[^\w\- ]", "", title.strip().lower()) for title in titles]
    return {title.replace(" ", "-") for title in plain}


@pytest.mark.parametrize("page", [page for page in PAGES if page.endswith(".md")])
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    for path, anchor in links_of((ROOT / page).read_text(encoding="utf-8")):
        target = ROOT / links.target_of(page, path)
        assert target.is_file(), f"{page} links to {path}, which is not there"
        assert not anchor or anchor in anchors(target), f"{page}: {path} has no heading #{anchor}"


def test_where_a_file_stands_in_the_site() -> None:
    paths = ["README.md", "docs/ppo.md", "docs/results/ppo.md", "rewriting/sample/FITS.md"]
    places = ["index.md", "ppo.md", "results/ppo.md", "repository/rewriting/sample/FITS.md"]
    assert [site_path(path) for path in paths] == places
    assert [links.repository_path(place) for place in places] == paths


@pytest.mark.parametrize(
    ("page", "link", "in_site"),
    [
        ("results/reward.md", "../../rewriting/sample/FITS.md#rows", None),
        ("index.md", "docs/ppo.md#a-step", "ppo.md#a-step"),
        ("index.md", "SECURITY.md", "repository/SECURITY.md"),
        ("repository/rewriting/sample/FITS.md", "../../docs/audit.md", "../../../audit.md"),
        ("repository/CONTRIBUTING.md", "docs/architecture.md", "../architecture.md"),
        ("ppo.md", "emprl.md", "emprl.md"),
        ("ppo.md", "#a-step", "#a-step"),
        ("ppo.md", "https://example.org/a.md", "https://example.org/a.md"),
    ],
)
def test_links_as_the_site_has_them(page: str, link: str, in_site: str | None) -> None:
    wanted = in_site or "../repository/rewriting/sample/FITS.md#rows"
    assert with_site_links(f"See [it]({link}).", page) == f"See [it]({wanted})."


def test_code_is_left_alone() -> None:
    text = "`[a](docs/b.md)`\n\n```\n[a](docs/b.md)\n- c\n```\n"
    assert with_site_links(text, "index.md") == text
    assert links.with_blank_lines(text) == text
    assert list(links_of(text)) == []


def test_code_in_the_text_of_a_link() -> None:
    assert with_site_links("[`a`](docs/b.md) `c`", "index.md") == "[`a`](b.md) `c`"


def test_lists_and_tables_get_the_blank_line_that_python_markdown_needs() -> None:
    text = "Two things:\n- one\n  goes on\n- two\n\nA table:\n| a |\n|---|\n| b |"
    wanted = "Two things:\n\n- one\n  goes on\n- two\n\nA table:\n\n| a |\n|---|\n| b |"
    assert links.with_blank_lines(text) == wanted


def test_a_table_right_after_code_gets_a_blank_line_too() -> None:
    text = "```\ncode\n```\n| a |\n|---|"
    assert links.with_blank_lines(text) == "```\ncode\n```\n\n| a |\n|---|"


def test_the_name_of_a_file_becomes_a_title() -> None:
    text = "```python my_terms.py\nx = 1\n```\n```python\ny = 2\n```\n"
    wanted = text.replace("my_terms.py", 'title="my_terms.py"')
    assert links.with_titles(text) == wanted


def test_files_outside_the_docs_are_found_through_other_files(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("[a](docs/page.md) [b](https://example.org/x.md)")
    (tmp_path / "docs/page.md").write_text("[sheet](../SHEET.md) [none](../NONE.md)")
    (tmp_path / "SHEET.md").write_text("[code](code.py)")
    (tmp_path / "code.py").write_text("")
    assert copied_files(tmp_path) == ["SHEET.md", "code.py"]
