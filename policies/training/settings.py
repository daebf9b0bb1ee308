"""Settings of both algorithms. Light to import: recipes borrow them for their help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewriting.errors import UserError
from rewriting.runtime.settings import setting
from rewriting.runtime.training.settings import RunSettings, check_run


@dataclass(frozen=True, kw_only=True)
class PolicySettings(RunSettings):
    """Settings that REINFORCE and PPO share."""

    keep_best: bool = setting(
        False, "Keep the weights with the best dev reward instead of the last ones."
    )
    show_every: int = setting(
        50,
        "Steps between two times that samples are written and curves are drawn.",
        least=1,
        may_change=True,
    )
    num_shown: int = setting(
        3, "Number of samples that are written each time.", least=0, may_change=True
    )


def check(
    settings: PolicySettings, accelerator: Any, exchanges: Sequence[Any], dev: Sequence[Any]
) -> None:
    """Say what cannot work before any model is asked."""
    if not exchanges:
        raise UserError("there are no exchanges to train on. Check the data and its filters.")
    check_run(settings, accelerator.num_processes)
    if settings.keep_best and not dev:
        raise UserError("keep_best compares dev rewards: give dev exchanges, or turn it off.")
