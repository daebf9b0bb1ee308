"""What an edit policy is, besides its weights: the file policy.json beside them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from rewriting.errors import UserError
from rewriting.runtime.files import write_json

FILE = "policy.json"


@dataclass(frozen=True, slots=True)
class EditSettings:
    """How an edit policy is built, how it reads and how it samples."""

    rank: int = 8
    """Of the LoRA matrices; 0 trains the whole model."""
    alpha: int = 16
    """LoRA's scale is alpha / rank."""
    dropout: float = 0.0
    """Before the LoRA matrices, in supervised training."""
    targets: tuple[str, ...] = ()
    """Layers that get LoRA matrices; none named: those of the attention."""
    head_width: int = 128
    """Of the keys that the position head compares."""
    span_length: int = 4
    """Sentences that the policy sees at once."""
    max_edits: int = 1
    """Edits of a span at the most."""
    max_prompt_tokens: int = 384
    max_new_tokens: int = 40
    temperature: float = 1.0
    top_p: float = 1.0
    """Below 1, what the policy would not say has the log-probability minus infinity, also under
    the reference: for using a policy, not for training one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", tuple(self.targets))  # from a file, a list
        if self.temperature <= 0 or not 0 < self.top_p <= 1:
            raise ValueError(f"temperature > 0, top_p in (0, 1]: {self.temperature}, {self.top_p}")
        if min(self.max_new_tokens, self.span_length, self.max_edits) < 1 or self.rank < 0:
            raise ValueError("max_new_tokens, span_length, max_edits are 1 or more, rank 0 or more")


def write_settings(folder: Path, backbone: str, settings: EditSettings) -> None:
    write_json(folder / FILE, {"kind": "edit_policy", "backbone": backbone} | asdict(settings))


def read_settings(folder: Path) -> tuple[str, EditSettings]:
    """The backbone's name and the settings; one clear line where the folder has none."""
    path = folder / FILE
    if not path.is_file():
        raise UserError(
            f"{folder} holds no policy: there is no {FILE} in it. "
            "Name the folder that `python train.py partner` wrote a policy to."
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("kind") != "edit_policy":
            raise ValueError("it is of another kind")
        backbone = str(found.pop("backbone"))
        unknown = set(found) - {field.name for field in fields(EditSettings)}
        if unknown:
            raise ValueError(f"unknown settings {', '.join(sorted(unknown))}")
        return backbone, EditSettings(**found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} does not describe an edit policy ({error}).") from error
