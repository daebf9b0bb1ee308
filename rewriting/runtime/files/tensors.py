"""Tensors on disk: safetensors files, written and read in one way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rewriting.errors import UserError
from rewriting.runtime.files.disk import disk_errors

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def save_tensors(
    tensors: Mapping[str, Tensor], path: Path, *, dtype: torch.dtype | None = None
) -> None:
    """Write tensors from any device to a file that everybody may read; its folder is made.

    dtype: float16 halves the file and rounds the weights; None writes them as they are.
    """
    from safetensors.torch import save_file

    on_cpu = {
        name: tensor.detach().to("cpu", dtype or tensor.dtype).contiguous()
        for name, tensor in tensors.items()
    }
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(on_cpu, path, metadata={"format": "pt"})
        path.chmod(0o644)  # safetensors writes 0600


def check_tensors(path: Path) -> None:
    """Raise where a file of tensors is missing, cut short or of another kind; none is loaded."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np"):
            pass
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} is missing or damaged ({error}).") from error


def load_tensors(path: Path, *, dtype: torch.dtype | None = None) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU. dtype: what to make of them; None leaves them."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        found = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} cannot be read ({error}). Get its folder again.") from error
    return {name: tensor.to(dtype or tensor.dtype) for name, tensor in found.items()}
