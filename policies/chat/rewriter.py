"""What a trained chat policy is: a chat model with an adapter that `train.py grpo` trained.

Its folder holds the adapter and policy.json, whose `kind` says how the model is asked: a rewriter
for the whole reply, an editor for edits of it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from rewriting import UserError
from rewriting.runtime.files import write_json

FILE = "policy.json"
REWRITER = "rewriter"
EDITOR = "editor"
KINDS = (REWRITER, EDITOR)


@dataclass(frozen=True, slots=True)
class RewriterSettings:
    """What a trained rewriter or editor is, besides its adapter: policy.json."""

    model: str = "smollm2-135m"
    max_new_tokens: int = 72
    max_prompt_tokens: int = 768
    temperature: float = 0.5
    top_p: float = 0.9


def with_adapter(model: torch.nn.Module, folder: Path) -> torch.nn.Module:
    """The model with the adapter of a folder in its weights."""
    from peft import PeftModel

    from rewriting.runtime.adapters import check_adapter

    check_adapter(model, folder)
    merged: torch.nn.Module = PeftModel.from_pretrained(model, folder).merge_and_unload()
    return merged.eval()


def write_rewriter(folder: Path, settings: RewriterSettings, kind: str = REWRITER) -> None:
    write_json(folder / FILE, {"kind": kind} | asdict(settings))


def read_rewriter(folder: Path, kind: str = REWRITER) -> RewriterSettings:
    """The settings of a trained chat policy; one clear line where the folder holds none."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if found.pop("kind") != kind:
            raise ValueError("it is of another kind")
        return RewriterSettings(**found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        article = "an" if kind == EDITOR else "a"
        raise UserError(f"{folder / FILE} does not describe {article} {kind} ({error}).") from error
