"""Names, and the installation behind short names."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewriting.errors import UserError
from rewriting.runtime.files.disk import sha256_of
from rewriting.runtime.files.folders import Damaged
from rewriting.runtime.models import convert, installed, wheels
from rewriting.runtime.models import named as models
from rewriting.runtime.models.assembly import Wheel, WheelFiles
from tests.rewriting.runtime import tiny

ROOT = Path(__file__).parents[4]
MEMBERS = {"tiny/config.json": "config.json", "tiny/model.safetensors": "model.safetensors"}
CONTENT = {"tiny/config.json": b"{}", "tiny/model.safetensors": b"w", "tiny/code.py": b"1/0"}


def named(wheel: Path, version: str = "1.0", **changes: Any) -> models.NamedModel:
    fields: dict[str, Any] = {
        "name": "tiny",
        "description": "a toy",
        "license": "MIT",
        "hub_id": "org/tiny",
        "contents": WheelFiles(Wheel("tiny", version, sha256_of(wheel)), MEMBERS),
        "size": wheel.stat().st_size,
        "disk_size": 3_000_000,
        "convert": convert.copied_folder,
    }
    return models.NamedModel(**{**fields, **changes})


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


INSTALLED = {"tiny", ".tiny.lock", ".tiny.checked.json", ".tiny.spare"}


def visible(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()}


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("REWRITING_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert models.cache_folder() == Path("/home/someone/.cache/empathic-rewriting")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert models.cache_folder() == Path("/caches/empathic-rewriting")
    monkeypatch.setenv("REWRITING_CACHE", "~/models")
    assert models.cache_folder() == Path("/home/someone/models")


def test_the_catalogue_names_each_model_by_its_key() -> None:
    assert list(models.SHORT_NAMES) == [
        "smollm2-135m",
        "minilm-l6",
        "flan-t5-small",
        "mpnet-base",
        "qwen2.5-coder-0.5b",
        "qwen2.5-coder-1.5b",
    ]
    for name, model in models.SHORT_NAMES.items():
        assert model.name == name
        checksums = [model.contents.sha256, *(wheel.sha256 for wheel in model.contents.wheels)]
        assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in checksums)
        assert len(set(model.contents.wheels)) == len(model.contents.wheels)


def test_only_the_models_of_the_default_settings_are_fetched_unasked() -> None:
    assert models.default_names() == ["smollm2-135m", "minilm-l6", "flan-t5-small", "mpnet-base"]
    assert sum(models.SHORT_NAMES[name].size for name in models.default_names()) < 655e6


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


def test_fetch_installs_once_and_records_what_it_did(downloads: list[str], cache: Path) -> None:
    folder = models.fetch("tiny")
    assert folder == cache / "tiny"
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "model.safetensors",
        "manifest.json",
    }
    record = json.loads((folder / "manifest.json").read_text())
    assert record["source"] == "wheel tiny"
    assert (record["version"], record["license"]) == ("1.0", "MIT")
    assert record["sha256"] == models.SHORT_NAMES["tiny"].contents.sha256
    assert record["files"]["model.safetensors"]["bytes"] == 1
    assert models.fetch("tiny") == folder
    assert models.fetch("tiny", verify=True) == folder
    assert models.resolve("tiny") == str(folder)
    assert downloads == ["tiny 1.0"]
    assert visible(cache) == INSTALLED


def test_status_tells_what_is_installed(downloads: list[str], cache: Path) -> None:
    def row() -> dict[str, Any]:
        return next(row for row in models.status() if row["name"] == "tiny")

    assert row()["installed"] is False
    models.fetch("tiny")
    assert row()["installed"] is True
    assert row()["folder"] == str(cache / "tiny")
    assert row().keys() >= {"description", "license", "size"}


@pytest.fixture
def no_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy's weights are as large as real ones: there is no copy of them."""
    monkeypatch.setattr(installed, "SPARE_BYTES", 0)


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


def test_a_flipped_byte_installs_nothing(downloads: list[str], cache: Path, wheel: Path) -> None:
    content = bytearray(wheel.read_bytes())
    content[40] ^= 1
    wheel.write_bytes(content)
    with pytest.raises(UserError, match="was refused: its SHA-256 is"):
        models.fetch("tiny")
    assert visible(cache) == {".tiny.lock"}


def test_an_interruption_leaves_nothing_behind(
    downloads: list[str], cache: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(source: Path, target: Path) -> None:
        (target / "model.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(models.SHORT_NAMES, "tiny", named(wheel, convert=interrupted))
        with pytest.raises(KeyboardInterrupt):
            models.fetch("tiny")
    assert visible(cache) == {".tiny.lock"}
    assert models.fetch("tiny").is_dir()


def test_a_full_disk_is_said_in_one_line(
    downloads: list[str], wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setitem(models.SHORT_NAMES, "tiny", named(wheel, convert=full))
    with pytest.raises(UserError, match=r"No space left.*needs 3 MB; set REWRITING_CACHE"):
        models.fetch("tiny")


# A process that fetches the toy. Its download says so, then waits for a line of input.
CHILD = """
import pathlib, shutil, sys
sys.path.insert(0, sys.argv[3])
from rewriting.runtime.models import named as models
from rewriting.runtime.models import wheels
from tests.rewriting.runtime.models.test_named import named

wheel, count = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
models.SHORT_NAMES["tiny"] = named(wheel)

def download(name, version, destination, on_bytes=None):
    destination.mkdir()
    with count.open("a") as file:
        file.write("x")
    print("downloading", flush=True)
    sys.stdin.readline()
    return pathlib.Path(shutil.copy(wheel, destination))

wheels.download = download
print(models.fetch("tiny"), flush=True)
"""


@pytest.fixture
def start(cache: Path, wheel: Path, tmp_path: Path) -> Any:
    """Starts such a process; whatever still runs at the end of the test is ended."""
    children: list[subprocess.Popen[str]] = []

    def run() -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", CHILD, str(wheel), str(tmp_path / "count"), str(ROOT)]
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        children.append(subprocess.Popen(command, text=True, **pipes))
        return children[-1]

    yield run
    for child in children:
        child.kill()
        child.communicate()


def wait_for(stream: Any, text: str) -> None:
    """Read lines until one holds `text`; the end of the stream is a failure."""
    for line in stream:
        if text in line:
            return
    raise AssertionError(f"the process ended without saying {text!r}")


def test_two_processes_at_once_download_once(
    start: Callable[[], Any], cache: Path, tmp_path: Path
) -> None:
    first = start()
    wait_for(first.stdout, "downloading")
    second = start()
    wait_for(second.stderr, "another process is fetching it; waiting")
    assert not (cache / "tiny").exists()
    assert first.communicate("go on\n")[0].strip() == str(cache / "tiny")
    assert second.communicate()[0].strip() == str(cache / "tiny")
    assert (first.returncode, second.returncode) == (0, 0)
    assert (tmp_path / "count").read_text() == "x"


def test_a_killed_fetch_breaks_nothing_and_is_cleaned_up(
    start: Callable[[], Any], downloads: list[str], cache: Path
) -> None:
    child = start()
    wait_for(child.stdout, "downloading")
    child.kill()
    child.wait()
    assert [name for name in visible(cache) if ".tmp-" in name], "its temporary is still there"
    assert not (cache / "tiny").exists()
    models.fetch("tiny")
    assert visible(cache) == INSTALLED


def test_a_local_folder_comes_before_a_short_name(
    downloads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models.resolve(str(tmp_path)) == str(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").mkdir()
    assert models.resolve("tiny") == "tiny"
    assert downloads == []


@pytest.mark.parametrize("name", ["./runs/a", "/no/such/folder", "~/none", "a/b/c", "..\\b", ""])
def test_a_missing_folder_is_not_taken_for_a_hub_id(name: str) -> None:
    with pytest.raises(UserError, match=r"does not exist\. Names that need no hub: smollm2-135m"):
        models.resolve(name)


def test_a_file_is_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(UserError, match="is a file; name the folder"):
        models.resolve(str(tmp_path / "model.safetensors"))


def test_a_hub_id_passes_unless_the_hub_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for switch in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(switch, raising=False)
    assert models.resolve("org/model") == "org/model"
    assert models.resolve("roberta-base") == "roberta-base"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match=r"'org/model' is no folder here.*path of a folder"):
        models.resolve("org/model")
    with pytest.raises(UserError, match="Did you mean smollm2-135m"):
        models.resolve("smolm2-135m")


def test_only_short_names_can_be_fetched() -> None:
    with pytest.raises(UserError, match="Did you mean minilm-l6"):
        models.fetch("minilm-l7")


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
