"""Names, and the installation behind short names."""

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewriting.errors import UserError
from rewriting.runtime.models import named as models
from tests.rewriting.runtime.models.toys import INSTALLED, named, visible

ROOT = Path(__file__).parents[4]


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
from tests.rewriting.runtime.models.toys import named

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
