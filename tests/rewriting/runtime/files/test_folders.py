"""A folder is whole or absent, and what is wrong with one is said in words."""

from pathlib import Path

import pytest
from filelock import FileLock

from rewriting.errors import UserError
from rewriting.runtime.files import folders

EDITION = {"version": "1.0"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.json").write_bytes(b"{}")
    (folder / "deep" / "b.txt").write_bytes(b"words")
    folders.write_manifest(folder, {"name": "tiny", **EDITION})
    return folder


def test_a_whole_folder_has_no_damage(folder: Path) -> None:
    assert folders.damage(folder, EDITION) is None
    assert folders.damage(folder, EDITION, checksums=True) is None


def test_missing_truncated_and_outdated_folders_are_told_apart(folder: Path) -> None:
    assert folders.damage(folder, {"version": "2.0"}) == "its version is '1.0', and '2.0' is needed"
    (folder / "deep" / "b.txt").write_bytes(b"word")
    assert folders.damage(folder, EDITION) == "its file deep/b.txt has 4 bytes instead of 5"
    (folder / "deep" / "b.txt").unlink()
    assert folders.damage(folder, EDITION) == "its file deep/b.txt is missing"
    for content in ("{", "[]", '{"version": "1.0"}'):
        (folder / folders.MANIFEST).write_text(content)
        assert folders.damage(folder, EDITION) == "its manifest.json is not readable"
    (folder / folders.MANIFEST).unlink()
    assert folders.damage(folder, EDITION) == "it is not installed"


def test_a_change_of_the_same_size_is_found_by_checksums_only(folder: Path) -> None:
    (folder / "deep" / "b.txt").write_bytes(b"wards")
    assert folders.damage(folder, EDITION) is None
    damage = folders.damage(folder, EDITION, checksums=True)
    assert damage == "its file deep/b.txt has changed (SHA-256 differs)"


def test_publishing_replaces_an_old_folder_and_leaves_no_temporary(
    folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "old.json").touch()
    with folders.temporary_beside(target) as temporary:
        folders.publish(folder, target, temporary)
    assert folders.damage(target, EDITION, checksums=True) is None
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert not (target / "old.json").exists()


def test_leftovers_of_the_dead_are_removed_and_those_of_others_are_not(tmp_path: Path) -> None:
    (tmp_path / ".model.tmp-dead").mkdir()
    (tmp_path / ".other.tmp-alive").mkdir()
    with folders.temporary_beside(tmp_path / "model") as temporary:
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {temporary.name, ".other.tmp-alive"}
    assert not temporary.exists()


@pytest.mark.parametrize("inside", [False, True])
def test_the_lock_of_a_writer_is_removed_while_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    """Removed after the release, it could be the lock that another process has just taken."""
    target = tmp_path / "target"
    release, left = FileLock.release, []

    def noting(lock: FileLock, force: bool = False) -> None:
        if lock.is_locked:  # not when one that was refused is thrown away
            left.append(Path(lock.lock_file).exists())
        release(lock, force)

    monkeypatch.setattr(FileLock, "release", noting)
    with (
        folders.only_writer(target, inside=inside),
        pytest.raises(UserError, match="another process is writing"),
        folders.only_writer(target, inside=inside),
    ):
        pass
    assert left == [False]
    assert list(tmp_path.iterdir()) == []


def test_a_lock_inside_a_folder_is_not_content_of_it(tmp_path: Path) -> None:
    with folders.only_writer(tmp_path, inside=True):
        (tmp_path / "a.json").write_bytes(b"{}")
        folders.write_manifest(tmp_path, EDITION)
    assert list(folders.files_of(tmp_path, EDITION)) == ["a.json"]
    assert folders.damage(tmp_path, EDITION, checksums=True) is None
