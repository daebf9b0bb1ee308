"""The site: its navigation and, where MkDocs is installed, a strict build."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.hooks.links import ROOT, copied_files, site_path
from docs.hooks.reference import PAGES

NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
without_mkdocs = pytest.mark.skipif(
    not all(map(find_spec, ("mkdocs", "material"))), reason="needs the extra docs"
)


def test_every_page_is_in_the_navigation_once_and_every_entry_is_a_page() -> None:
    entries = re.findall(r": (\S+\.md)$", NAVIGATION, re.M)
    written = [site_path(str(page.relative_to(ROOT))) for page in ROOT.glob("docs/**/*.md")]
    copies = [site_path(path) for path in copied_files()]
    assert len(entries) == len(set(entries))
    assert {"index.md", *written, *PAGES} <= set(entries)
    assert set(entries) <= {"index.md", *written, *PAGES, *copies}


def build(output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(output)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)


@without_mkdocs
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    result = build(tmp_path)
    assert result.returncode == 0, result.stderr
    front = (tmp_path / "index.html").read_text(encoding="utf-8")
    loaded = re.findall(r'<(?:script|img|link rel="stylesheet")[^>]+(?:src|href)="([^"]+)"', front)
    assert loaded
    assert [address for address in loaded if "//" in address] == []
    assert (tmp_path / "repository/rewriting/sample/FITS.html").exists()
    # A block of code that was not taken for one would show its fence.
    pages = list(tmp_path.rglob("*.html"))
    assert [page.name for page in pages if "```" in page.read_text(encoding="utf-8")] == []
