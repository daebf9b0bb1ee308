"""Folders from the hub, with a fake in its place: nothing here uses the network."""

import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from rewriting import UserError
from rewriting.runtime.models import hub
from rewriting.runtime.models.hub import (
    files_to_send,
    folder_with,
    found_folder,
    hub_folder,
    is_hub_id,
)

FOLDER = {
    "policy.json": "{}",
    "weights.safetensors": "w",
    "model/merges.txt": "a b",
    "model/config.json": "{}",
    "notes.txt": "mine",
    "trainer.pkl": "code",
    "evil.py": "code",
}


@pytest.fixture
def download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The patterns of each download of `org/agent`, whose files are those of FOLDER."""
    there, calls = tmp_path / "there", []
    write(there)

    def snapshot_download(
        name: str, *, local_dir: Path, allow_patterns: list[str], **_: Any
    ) -> str:
        calls.append(allow_patterns)
        if name != "org/agent":
            raise ConnectionError("Got: ConnectError\nand a page of advice")
        for path in (path for path in there.rglob("*") if path.is_file()):
            relative = path.relative_to(there)
            if any(fnmatch(relative.as_posix(), kind) for kind in allow_patterns):
                (local_dir / relative).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, local_dir / relative)
        return str(local_dir)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("REWRITING_CACHE", str(tmp_path / "cache"))
    hub_folder.cache_clear()
    yield calls
    hub_folder.cache_clear()


def write(folder: Path) -> None:
    for name, text in FOLDER.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_only_weights_settings_and_vocabularies_are_brought(download: list[Any]) -> None:
    folder = hub_folder("org/agent", "policy.json")
    brought = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert brought == {
        "policy.json",
        "weights.safetensors",
        "model/merges.txt",
        "model/config.json",
    }
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert hub_folder("org/agent", "policy.json") == folder
    assert download == [["policy.json"], [*hub.FILES]]  # once in a process, the small file first


def test_a_repository_of_another_kind_costs_one_small_file(download: list[Any]) -> None:
    with pytest.raises(UserError, match=r"org/agent on the hub is of another kind.*no model\.gguf"):
        hub_folder("org/agent", "model.gguf")
    assert download == [["model.gguf"]]


def test_one_of_several_files_tells_the_kind(download: list[Any]) -> None:
    folder = hub_folder("org/agent", "identifier.json", "policy.json")
    assert (folder / "weights.safetensors").is_file()
    assert download[0] == ["identifier.json", "policy.json"]
    with pytest.raises(UserError, match=r"it has no identifier\.json or reader\.json\."):
        hub_folder("org/agent", "identifier.json", "reader.json")


def test_a_model_of_ours_is_found_here_and_on_the_hub(
    download: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    brought = tmp_path / "cache" / "hub" / "org--agent"
    assert found_folder("org/agent", "policy.json") == brought
    assert folder_with("org/agent", "policy.json") == brought
    assert folder_with("org/agent", "model.gguf") is None
    assert folder_with("org/other", "policy.json") is None
    (tmp_path / "org/agent").mkdir(parents=True)
    asked = len(download)
    assert found_folder("org/agent", "policy.json") == Path("org/agent")  # a folder comes first
    assert folder_with("org/agent", "policy.json") is None
    assert found_folder(tmp_path / "gone", "policy.json") == tmp_path / "gone"
    assert found_folder("gone", "policy.json") == Path("gone")
    assert len(download) == asked


def test_a_model_from_the_hub_is_looked_through(download: list[Any], tmp_path: Path) -> None:
    text = '{"auto_map": {"AutoModel": "evil.Model"}}'
    (tmp_path / "there" / "model/config.json").write_text(text)
    with pytest.raises(UserError, match="names code to run"):
        found_folder("org/agent", "policy.json")


def test_what_cannot_be_had_is_one_line(
    download: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        UserError, match=r"'org/other' is no folder here.*\(Got: ConnectError\)"
    ) as e:
        hub_folder("org/other", "policy.json")
    assert "\n" not in str(e.value)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"the hub is switched off \(HF_HUB_OFFLINE\)"):
        hub_folder("org/other", "policy.json")


def test_errors_of_the_network_are_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import HfHubHTTPError

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    (http_error,) = (base for base in HfHubHTTPError.__bases__ if base is not OSError)
    with pytest.raises(UserError, match=r"it failed \(refused\)\."), hub.explained("it failed"):
        raise http_error("refused. And more\nand more")
    with pytest.raises(KeyError), hub.explained("it failed"):
        raise KeyError("a bug")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("org/agent", True),
        ("my-org/agent_1.5", True),
        ("agent", False),
        ("org/agent/more", False),
        ("../agent", False),
        ("/agent", False),
        ("~/agent", False),
        ("org/..", False),
        ("here/agent", False),
        ("", False),
    ],
)
def test_what_can_be_a_hub_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: bool
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert is_hub_id(name) is expected


def test_files_that_stay_are_named_and_hidden_ones_are_nobodys_business(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache/secret.json").write_text("{}")
    sent, left = ([path.as_posix() for path in part] for part in files_to_send(tmp_path))
    assert sent == ["model/config.json", "model/merges.txt", "policy.json", "weights.safetensors"]
    assert left == ["evil.py", "notes.txt", "trainer.pkl"]
