"""How a policy samples in use. Light to import: the settings of policies borrow these fields."""

from __future__ import annotations

from dataclasses import dataclass

from rewriting.runtime.settings import setting


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """Fields of a policy whose tokens are drawn one by one."""

    temperature: float = setting(1.0, "Sampling temperature.", above=0)
    top_p: float = setting(
        1.0,
        "Nucleus sampling: probability mass that is kept. Below 1, tokens cut off have "
        "log-probability -inf, in the reference too: for use, not for training.",
        above=0,
        greatest=1,
    )
