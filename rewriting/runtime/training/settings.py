"""The settings of every run. Light to import: recipes borrow them for their help."""

from __future__ import annotations

from dataclasses import dataclass

from rewriting.errors import UserError
from rewriting.runtime.settings import check_bounds, setting


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings that every training run has."""

    steps: int = setting(100, "Optimizer steps.", least=0)
    batch_size: int = setting(8, "Examples per step, over all processes.", least=1)
    micro_batch_size: int = setting(
        8, "Examples in memory at once; it changes no result.", least=1, may_change=True
    )
    learning_rate: float = setting(1e-5, "Peak learning rate, after the linear warm-up.", least=0)
    weight_decay: float = setting(0.0, "Weight decay of AdamW.", least=0)
    warmup: float = setting(
        0.05,
        "Share of the steps in which the learning rate rises; then it falls to 0 on a line.",
        least=0,
        greatest=1,
    )
    max_grad_norm: float = setting(1.0, "Gradients are clipped to this norm.", above=0)
    eval_every: int = setting(50, "Steps between two measurements on dev.", least=1)
    save_every: int = setting(50, "Steps between two checkpoints.", least=1, may_change=True)
    seed: int = setting(0, "The same seed gives the same weights.")


def check_run(settings: RunSettings, num_processes: int) -> None:
    """Refuse what no run can do, before anything is loaded."""
    check_bounds(settings)
    if settings.batch_size % num_processes:
        raise UserError(
            f"a batch of {settings.batch_size} cannot be shared by {num_processes} processes. "
            "Make batch_size a multiple of them."
        )
