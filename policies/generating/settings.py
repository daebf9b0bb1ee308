"""What a generator is, besides its weights: the file policy.json beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from policies.reading.settings import SamplingSettings
from rewriting.errors import UserError
from rewriting.runtime.files.policy_files import FILE, read_policy, write_policy
from rewriting.runtime.settings import borrowed, check_bounds, setting

KIND: Final = "generator"
ADAPTERS: Final = ("prefix", "lora", "none")


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """How a generator is built, how it reads and how it samples."""

    adapter: str = "prefix"
    """prefix: virtual tokens before the decoder's own. lora: low-rank changes of the attention.
    none: the model as it is, to compare with."""
    num_virtual_tokens: int = setting(
        20, "Number of virtual tokens in the prefix.", least=1, greatest=10_000
    )
    rank: int = setting(
        16, "Rank of the LoRA matrices; their update is scaled by 1.", least=1, greatest=1024
    )
    max_context_tokens: int = setting(
        200,
        "Maximum length of a conversation, in tokens; longer ones lose their oldest turns.",
        least=1,
        greatest=10_000_000,
    )
    max_new_tokens: int = setting(
        40,
        "Maximum length of a response, in tokens, its end token included.",
        least=1,
        greatest=10_000_000,
    )
    temperature: float = borrowed(SamplingSettings, "temperature")
    top_p: float = borrowed(SamplingSettings, "top_p")
    value_width: int = setting(
        128, "Width of the value head's hidden layer.", least=1, greatest=16_384
    )

    def __post_init__(self) -> None:
        if self.adapter not in ADAPTERS:
            raise UserError(f"there is no adapter {self.adapter!r}; use {', '.join(ADAPTERS)}.")
        check_bounds(self)


def write_settings(folder: Path, model: str, settings: GeneratorSettings) -> None:
    write_policy(folder, KIND, settings, model=model)


def read_settings(folder: Path) -> tuple[str, GeneratorSettings]:
    """The model's name and the settings; one clear line where the folder has none."""
    if not (folder / FILE).is_file():
        raise UserError(
            f"{folder} holds no generator: there is no {FILE} in it. "
            "Name the folder that `python train.py emprl` wrote one to."
        )
    return read_policy(folder, KIND, GeneratorSettings, called="a generator", named="model")
