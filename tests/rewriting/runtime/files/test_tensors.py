"""Tensors on disk: any layout in, the same numbers out, and one line where that fails."""

from pathlib import Path

import pytest
import torch

from rewriting.errors import UserError
from rewriting.runtime.files.tensors import load_tensors, save_tensors


def test_tensors_come_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "weights.safetensors"
    square = torch.arange(6.0).reshape(2, 3).requires_grad_()
    save_tensors({"turned": square.T, "whole": torch.tensor([1, 2])}, path)
    found = load_tensors(path)
    assert torch.equal(found["turned"], square.detach().T)
    assert found["whole"].dtype == torch.int64
    assert path.stat().st_mode & 0o777 == 0o644


def test_half_precision_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    save_tensors({"x": torch.tensor([1 / 3])}, path, dtype=torch.float16)
    assert load_tensors(path)["x"].dtype == torch.float16
    single = load_tensors(path, dtype=torch.float32)["x"]
    assert single.dtype == torch.float32
    assert single.item() == torch.tensor(1 / 3).half().item()


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.safetensors cannot be read"):
        load_tensors(tmp_path / "gone.safetensors")
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"damaged\.safetensors cannot be read"):
        load_tensors(damaged)
    with pytest.raises(UserError, match=r"cannot write .*damaged\.safetensors"):
        save_tensors({"x": torch.ones(1)}, damaged / "weights.safetensors")
