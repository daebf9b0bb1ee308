"""Fixtures of the A/B tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rewriting.ab.toys import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path / "study") as site:
        yield site
