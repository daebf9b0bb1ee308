"""What a trained chat policy is: a chat model with an adapter that `train.py grpo` trained.

Its folder holds the adapter and policy.json, whose `kind` says how the model is asked: a rewriter
for the whole reply, an editor for edits of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rewriting.runtime.files.policy_files import read_policy, write_policy
from rewriting.runtime.settings import check_bounds, setting

REWRITER = "rewriter"
EDITOR = "editor"
KINDS = (REWRITER, EDITOR)


@dataclass(frozen=True, slots=True)
class RewriterSettings:
    """What a trained rewriter or editor is, besides its adapter: policy.json."""

    model: str = "smollm2-135m"
    max_new_tokens: int = setting(
        72, "Maximum length of an answer, in tokens.", least=1, greatest=10_000_000
    )
    max_prompt_tokens: int = setting(
        768, "Maximum length of a prompt, in tokens.", least=1, greatest=10_000_000
    )
    temperature: float = setting(0.5, "Sampling temperature.", above=0)
    top_p: float = setting(
        0.9, "Nucleus sampling: probability mass that is kept.", above=0, greatest=1
    )

    def __post_init__(self) -> None:
        check_bounds(self)

    def options(self) -> dict[str, Any]:
        """What a chat policy is built with, beside its model."""
        return {
            "max_new_tokens": self.max_new_tokens,
            "max_prompt_tokens": self.max_prompt_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
        }


def with_adapter(model: torch.nn.Module, folder: Path) -> torch.nn.Module:
    """The model with the adapter of a folder in its weights."""
    from peft import PeftModel

    from rewriting.runtime.language_models.adapters import check_adapter

    check_adapter(model, folder)
    merged: torch.nn.Module = PeftModel.from_pretrained(model, folder).merge_and_unload()
    return merged.eval()


def write_rewriter(folder: Path, settings: RewriterSettings, kind: str = REWRITER) -> None:
    write_policy(folder, kind, settings)


def read_rewriter(folder: Path, kind: str = REWRITER) -> RewriterSettings:
    """The settings of a trained chat policy; one clear line where the folder holds none."""
    article = "an" if kind == EDITOR else "a"
    return read_policy(folder, kind, RewriterSettings, called=f"{article} {kind}")[1]
