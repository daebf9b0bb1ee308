"""What damage to the two files of a saved model comes to: one line, whatever is damaged."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from rewriting.errors import UserError
from rewriting.runtime.files.model_files import (
    CHECKSUM,
    WEIGHTS,
    one_line_where_unfit,
    read_model_settings,
    write_model_settings,
)
from rewriting.runtime.files.tensors import save_tensors

SETTINGS: dict[str, Any] = {"bars": (0.5, 1 / 3), "of": {10: "a", 2: "é"}, "rank": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_tensors({"x": torch.arange(6.0)}, tmp_path / "m.safetensors")
    write_model_settings(tmp_path, "m.json", SETTINGS, weights="m.safetensors")
    return tmp_path


def read(folder: Path, checked: bool = True) -> dict[str, Any]:
    return read_model_settings(
        folder, "m.json", weights="m.safetensors", called="toy", checked=checked
    )


def unsealed(path: Path, **changed: Any) -> None:
    """Change settings as somebody would who takes the checksums out."""
    settings = json.loads(path.read_text(encoding="utf-8")) | changed
    rest = {name: one for name, one in settings.items() if name not in (CHECKSUM, WEIGHTS)}
    path.write_text(json.dumps(rest), encoding="utf-8")


def test_settings_come_back_as_json_has_them(folder: Path) -> None:
    expected = {"bars": [0.5, 1 / 3], "of": {"10": "a", "2": "é"}, "rank": 2}
    assert read(folder) == expected
    unsealed(folder / "m.json", rank=3)  # as a folder of an earlier release
    assert read(folder) == expected | {"rank": 3}


def test_every_flipped_bit_of_the_weights_is_found(folder: Path) -> None:
    path = folder / "m.safetensors"
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(UserError, match=r"m\.safetensors has changed since it was saved"):
            read(folder)
    assert read(folder, checked=False)["rank"] == 2


def test_a_changed_setting_is_found(folder: Path) -> None:
    path = folder / "m.json"
    path.write_text(path.read_text().replace('"rank": 2', '"rank": 3'))
    with pytest.raises(
        UserError, match=r'has changed since it was saved.* its line "checksum" out'
    ):
        read(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is damaged"),
        (b"[1]", "it is no object of settings"),
        (b"[" * 20_000, "is damaged"),
        (b'{"rank": ' + b"9" * 5000 + b"}", "is damaged"),
        (b"\xff", "is damaged"),
    ],
)
def test_settings_that_are_none_are_one_line(folder: Path, content: bytes, message: str) -> None:
    (folder / "m.json").write_bytes(content)
    with pytest.raises(UserError, match=message) as refused:
        read(folder)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_a_missing_file_is_one_line(folder: Path) -> None:
    (folder / "m.safetensors").unlink()
    with pytest.raises(UserError, match=r"holds no toy: it needs m\.json and m\.safetensors"):
        read(folder)


def test_what_cannot_be_built_is_one_line_and_memory_is_no_damage(tmp_path: Path) -> None:
    no_rank = r"does not describe a model \(there is no 'rank'\)"
    with pytest.raises(UserError, match=no_rank), one_line_where_unfit(tmp_path):
        SETTINGS["of"]["rank"]
    unfit = pytest.raises(UserError, match="does not describe a model")
    with unfit as refused, one_line_where_unfit(tmp_path):
        torch.nn.Linear(2, 3).load_state_dict({"weight": torch.zeros(1)})
    assert "\n" not in str(refused.value)
    with pytest.raises(torch.OutOfMemoryError), one_line_where_unfit(tmp_path):
        raise torch.OutOfMemoryError
