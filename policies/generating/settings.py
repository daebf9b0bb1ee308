"""What a generator is, besides its weights: the file policy.json beside them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

from rewriting.errors import UserError
from rewriting.runtime.files import write_json

FILE: Final = "policy.json"
KIND: Final = "generator"
ADAPTERS: Final = ("prefix", "lora", "none")


@dataclass(frozen=True, slots=True)
class GeneratorSettings:
    """How a generator is built, how it reads and how it samples."""

    adapter: str = "prefix"
    """prefix: virtual tokens before the decoder's own. lora: low-rank changes of the attention.
    none: the model as it is, to compare with."""
    num_virtual_tokens: int = 20
    """Of the prefix."""
    rank: int = 16
    """Of the LoRA matrices, whose scale is 1."""
    max_context_tokens: int = 200
    max_new_tokens: int = 40
    """The end of a response is one of them."""
    temperature: float = 1.0
    top_p: float = 1.0
    """Below 1, what the policy would not say has the log-probability minus infinity, also under
    the reference: for using a generator, not for training one."""
    value_width: int = 128
    """Of the value head's hidden layer."""

    def __post_init__(self) -> None:
        if self.adapter not in ADAPTERS:
            raise UserError(f"there is no adapter {self.adapter!r}; use {', '.join(ADAPTERS)}.")
        if self.temperature <= 0 or not 0 < self.top_p <= 1:
            raise UserError(
                f"temperature must be above 0 and top_p in (0, 1], not {self.temperature} and "
                f"{self.top_p}."
            )
        counts = (self.num_virtual_tokens, self.rank, self.max_context_tokens, self.max_new_tokens)
        if min(counts) < 1:
            raise UserError(
                "num_virtual_tokens, rank, max_context_tokens and max_new_tokens must be 1 or more."
            )


def write_settings(folder: Path, model: str, settings: GeneratorSettings) -> None:
    write_json(folder / FILE, {"kind": KIND, "model": model} | asdict(settings))


def read_settings(folder: Path) -> tuple[str, GeneratorSettings]:
    """The model's name and the settings; one clear line where the folder has none."""
    path = folder / FILE
    if not path.is_file():
        raise UserError(
            f"{folder} holds no generator: there is no {FILE} in it. "
            "Name the folder that `python train.py emprl` wrote one to."
        )
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("kind") != KIND:
            raise ValueError("it is of another kind")
        model = str(found.pop("model"))
        unknown = set(found) - {field.name for field in fields(GeneratorSettings)}
        if unknown:
            raise ValueError(f"unknown settings {', '.join(sorted(unknown))}")
        return model, GeneratorSettings(**found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} does not describe a generator ({error}).") from error
