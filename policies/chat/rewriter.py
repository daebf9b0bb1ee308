"""What a trained rewriter is: a chat model with an adapter that `train.py grpo` trained.

Its folder holds the adapter and policy.json.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from rewriting import UserError
from rewriting.runtime.files import write_json

FILE = "policy.json"
KIND = "rewriter"


@dataclass(frozen=True, slots=True)
class RewriterSettings:
    """What a trained rewriter is, besides its adapter: policy.json."""

    model: str = "smollm2-135m"
    max_new_tokens: int = 72
    max_prompt_tokens: int = 768
    temperature: float = 0.5
    top_p: float = 0.9


def with_adapter(model: torch.nn.Module, folder: Path) -> torch.nn.Module:
    """The model with the adapter of a folder in its weights."""
    from peft import PeftModel

    from rewriting.runtime.backbone import check_adapter

    check_adapter(model, folder)
    merged: torch.nn.Module = PeftModel.from_pretrained(model, folder).merge_and_unload()
    return merged.eval()


def write_rewriter(folder: Path, settings: RewriterSettings) -> None:
    write_json(folder / FILE, {"kind": KIND} | asdict(settings))


def read_rewriter(folder: Path) -> RewriterSettings:
    """The settings of a trained rewriter; one clear line where the folder holds none."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if found.pop("kind") != KIND:
            raise ValueError("it is of another kind")
        return RewriterSettings(**found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{folder / FILE} does not describe a rewriter ({error}).") from error
