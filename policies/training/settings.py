"""Settings of both algorithms. Light to import: recipes borrow them for their help."""

from __future__ import annotations

from dataclasses import dataclass

from rewriting.runtime.training.settings import RunSettings, setting


@dataclass(frozen=True, kw_only=True)
class PolicySettings(RunSettings):
    """What both algorithms have."""

    keep_best: bool = setting(False, "Keep the weights with the best dev reward, not the last.")
    show_every: int = setting(50, "Steps between two looks at samples.", least=1, may_change=True)
    num_shown: int = setting(3, "Samples of such a look.", least=0, may_change=True)
