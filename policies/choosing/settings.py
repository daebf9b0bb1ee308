"""What a choosing policy is, besides its weights: the file policy.json beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rewriting.runtime.files.policy_files import read_policy, write_policy
from rewriting.runtime.settings import check_bounds, setting

KIND: Final = "choosing_policy"


@dataclass(frozen=True, slots=True)
class ChoosingSettings:
    """How a choosing policy is built, how it reads and how it samples."""

    rank: int = setting(
        6, "Rank of the LoRA matrices in the encoder; 0: no LoRA matrices.", least=0, greatest=1024
    )
    layers: int = setting(
        9, "Number of encoder layers that are used, from the first; 0: all.", least=0, greatest=1024
    )
    frozen_layers: int = setting(
        0, "How many of the lowest layers have no LoRA matrices.", least=0, greatest=1024
    )
    max_tokens: int = setting(
        160, "Longer posts are cut to this many tokens.", least=8, greatest=100_000
    )
    width: int = setting(96, "Width of each head's hidden layer.", least=1, greatest=16_384)
    choices: int = setting(
        24,
        "Number of sentences of similar posts that the policy chooses from, at the most.",
        least=1,
        greatest=4096,
    )
    least_cosine: float = setting(
        0.4,
        "Least cosine similarity of a post whose sentences may be lent.",
        least=-1,
        greatest=1,
    )
    least_welcome: float = setting(
        0.0,
        "Least probability, as the encoder reads it, that a sentence to lend makes sense under the "
        "post, is true and hurts nobody. Where no sentence reaches it, the reply is left alone.",
        least=0,
        greatest=1,
    )
    pool: int = setting(
        48,
        "Number of sentences of similar posts that are read to find those that reach "
        "least_welcome; the policy chooses from the most welcome of them.",
        least=1,
        greatest=4096,
    )
    span_length: int = setting(
        4, "Number of sentences that the policy sees at once.", least=1, greatest=10_000
    )
    max_edits: int = setting(2, "Maximum number of edits per span.", least=1, greatest=10_000)
    temperature: float = setting(1.0, "Sampling temperature.", above=0)
    top_p: float = setting(
        1.0,
        "Nucleus sampling: probability mass that is kept. Below 1 is for using a policy, not for "
        "training one.",
        above=0,
        greatest=1,
    )

    def __post_init__(self) -> None:
        check_bounds(self)


def write_settings(folder: Path, encoder: str, settings: ChoosingSettings) -> None:
    write_policy(folder, KIND, settings, encoder=encoder)


def read_settings(folder: Path) -> tuple[str, ChoosingSettings]:
    """The encoder's name and the settings; one clear line where the folder has none."""
    return read_policy(folder, KIND, ChoosingSettings, called="a choosing policy", named="encoder")
