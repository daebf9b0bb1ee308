"""The hooks of MkDocs: the pages that docs/ does not hold, and links as the site has them."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

from docs.hooks import links, reference


def on_files(files: Files, config: Any) -> Files:
    """Add the README as the front page, copies of linked files, and the reference."""
    copies = {links.site_path(path): path for path in ("README.md", *links.copied_files())}
    for page, path in copies.items():
        text = (links.ROOT / path).read_bytes()
        level = InclusionLevel.INCLUDED if page == "index.md" else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, page, content=text, inclusion=level))
    for page, make in reference.PAGES.items():
        files.append(File.generated(config, page, content=make()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links, lists and blocks of code work as they do in the repository."""
    path = page.file.src_uri
    if path not in reference.PAGES:
        markdown = links.with_site_links(markdown, path)
    return links.with_titles(links.with_blank_lines(markdown))
