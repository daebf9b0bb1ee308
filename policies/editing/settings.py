"""What an edit policy is, besides its weights: the file policy.json beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from policies.reading.settings import SamplingSettings
from rewriting.errors import UserError
from rewriting.runtime.files.policy_files import FILE, read_policy, write_policy
from rewriting.runtime.settings import borrowed, check_bounds, setting

KIND: Final = "edit_policy"


@dataclass(frozen=True, slots=True)
class EditSettings:
    """How an edit policy is built, how it reads and how it samples."""

    rank: int = setting(
        8, "Rank of the LoRA matrices; 0: the whole model is trained.", least=0, greatest=1024
    )
    alpha: int = setting(
        16,
        "LoRA alpha: the update is scaled by alpha / rank.",
        least=0,
        greatest=65_536,
    )
    dropout: float = setting(
        0.0, "Dropout rate before the LoRA matrices, in supervised training.", least=0, greatest=1
    )
    lora_layers: tuple[str, ...] = ()
    """Layers that get LoRA matrices; none named: those of the attention."""
    head_width: int = setting(
        128, "Width of the keys that the position head compares.", least=1, greatest=16_384
    )
    span_length: int = setting(
        4, "Number of sentences that the policy sees at once.", least=1, greatest=10_000
    )
    max_edits: int = setting(1, "Maximum number of edits per span.", least=1, greatest=10_000)
    max_prompt_tokens: int = setting(
        384,
        "Maximum length of a prompt, in tokens; longer posts are cut to fit.",
        least=1,
        greatest=10_000_000,
    )
    max_new_tokens: int = setting(
        40, "Maximum length of a new sentence, in tokens.", least=1, greatest=10_000_000
    )
    temperature: float = borrowed(SamplingSettings, "temperature")
    top_p: float = borrowed(SamplingSettings, "top_p")

    def __post_init__(self) -> None:
        object.__setattr__(self, "lora_layers", tuple(self.lora_layers))  # from a file, a list
        check_bounds(self)


def write_settings(folder: Path, backbone: str, settings: EditSettings) -> None:
    write_policy(folder, KIND, settings, backbone=backbone)


def read_settings(folder: Path) -> tuple[str, EditSettings]:
    """The backbone's name and the settings; one clear line where the folder has none."""
    if not (folder / FILE).is_file():
        raise UserError(
            f"{folder} holds no policy: there is no {FILE} in it. "
            "Name the folder that `python train.py partner` wrote a policy to."
        )
    return read_policy(folder, KIND, EditSettings, called="an edit policy", named="backbone")
