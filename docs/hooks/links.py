"""Links between Markdown files: where they lead in the repository, and where in the site.

The pages are written for both. In the repository a link is relative to the file that holds it. The
site consists of docs/, of the README as its front page, and of copies of the other files that
pages link to, under `repository/`: this project names no address of its own to link to instead.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
COPIES = "repository/"
LINK = re.compile(
    r"^(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)[ ]*$"  # a block of code
    r"|`[^`\n]+`"  # code in a line; not that in the text of a link, which begins before it
    r"|(?P<text>!?\[[^\]]*\]\()(?P<target>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)


def links(markdown: str) -> Iterator[tuple[str, str]]:
    """The relative links of a text: a path and an anchor, either of which may be empty."""
    for found in LINK.finditer(markdown):
        if found["target"] and not leads_elsewhere(found["target"]):
            path, _, anchor = found["target"].partition("#")
            yield unquote(path), anchor


def leads_elsewhere(target: str) -> bool:
    """Whether a link names an address, such as https://… or mailto:…"""
    return re.match(r"[a-z][a-z+.-]*:", target) is not None


def target_of(path: str, link: str) -> str:
    """The file in the repository that a link leads to, from the file that holds it."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) if link else path


def site_path(path: str) -> str:
    """Where a file of the repository stands in the site."""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else COPIES + path


def repository_path(path: str) -> str:
    """Where a file of the site stands in the repository."""
    if path == "index.md":
        return "README.md"
    return path.removeprefix(COPIES) if path.startswith(COPIES) else f"docs/{path}"


def copied_files(root: Path = ROOT) -> list[str]:
    """The files outside docs/ that pages link to, and those that these files link to in turn."""
    waiting = ["README.md", *(str(page.relative_to(root)) for page in root.glob("docs/**/*.md"))]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if path.endswith(".md"):
            text = (root / path).read_text(encoding="utf-8")
            found = {target_of(path, link) for link, _ in links(text)} - seen
            new = {one for one in found if (root / one).is_file()}
            seen |= new
            waiting += new
    return sorted(path for path in seen if not path.startswith("docs/") and path != "README.md")


def with_site_links(markdown: str, page: str) -> str:
    """The text of a page of the site, its links as the site has them."""
    source = repository_path(page)

    def change(found: re.Match[str]) -> str:
        path, hash_sign, anchor = (found["target"] or "").partition("#")
        if not path or leads_elsewhere(path):
            return found[0]
        to = posixpath.relpath(site_path(target_of(source, path)), posixpath.dirname(page) or ".")
        return f"{found['text']}{to}{hash_sign}{anchor})"

    return LINK.sub(change, markdown)


FILE_NAME = re.compile(r"^(```\w+) ([^\s=]+)[ ]*$", re.MULTILINE)


def with_titles(markdown: str) -> str:
    """The name of a file that a block of code is written to, as the site shows it: a title.

    Without the keyword the site would not take the block for one.
    """
    return FILE_NAME.sub(r'\1 title="\2"', markdown)


BLOCK_START = re.compile(r"(?:[-*] |1\. |\|)")
CONTINUES = re.compile(r"(?:\s|[-*] |\d+\. |\||#|$)")


def with_blank_lines(markdown: str) -> str:
    """A blank line before each list or table that follows a paragraph, and after blocks of code.

    Elsewhere, as on GitHub, it may be missing; Python-Markdown would read on in the paragraph.
    """

    def change(text: str) -> str:
        lines: list[str] = []
        for line in text.split("\n"):
            follows_text = lines and not CONTINUES.match(lines[-1])
            if follows_text and BLOCK_START.match(line):
                lines.append("")
            lines.append(line)
        return "\n".join(lines)

    blocks = re.split(r"(^```.*?^```[ ]*$)", markdown, flags=re.MULTILINE | re.DOTALL)
    apart = [re.sub(r"\A\n(?=[^\n])", "\n\n", text) for text in blocks]
    return "".join(text if text.startswith("```") else change(text) for text in apart)
