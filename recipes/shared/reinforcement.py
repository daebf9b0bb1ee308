"""What the recipes of reinforcement learning do alike, from the loop to the policy's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recipes.shared.settings import kl_penalty
from rewriting.runtime.settings import given, lasting

if TYPE_CHECKING:
    from rewriting.data import Split
    from rewriting.exchange import Exchange


def reinforce(
    recipe: str,
    config: Any,
    agent: Any,
    reward: Any,
    splits: Mapping[Split, list[Exchange]],
    accelerator: Any,
) -> dict[str, Any]:
    """Reinforce an edit policy, which is its own reference at first; the figures of the kept step.

    Replies with more empathy than `max_empathy` are left out.
    """
    from policies.training.reinforce.loop import train
    from policies.training.reinforce.settings import Settings

    agent.freeze_reference()
    result = train(
        agent,
        reward,
        [e for e in splits["train"] if (e.empathy or 0) <= config.max_empathy],
        given(Settings, config),
        output=Path(config.output),
        accelerator=accelerator,
        kl=kl_penalty(config),
        dev_exchanges=dev_exchanges(config, splits),
        same=lasting(config),
        title=recipe,
    )
    return kept_figures(result)


def kept_figures(result: Any) -> dict[str, Any]:
    """The step that a run kept, and the rows of its log at first and there."""
    kept = [row for row in result.rows if row["step"] == result.step][-1]
    return {"step": result.step, "first": result.rows[0], "last": kept}


def dev_exchanges(config: Any, splits: Mapping[Split, list[Exchange]]) -> list[Exchange]:
    """The exchanges that each measurement on dev uses; none with `dev_rows` 0."""
    from recipes.shared.sources import drawn

    return drawn(splits["dev"], config.dev_rows, config.seed) if config.dev_rows else []


def save_policy(config: Any, policy: Any, folder: Path) -> None:
    """Write the policy as it is to be used: it samples less boldly than in training."""
    import torch

    settings = policy.settings
    policy.settings = replace(settings, temperature=config.temperature, top_p=config.top_p)
    policy.save(folder, dtype=torch.float16 if config.half else None)
    policy.settings = settings


def before_and_after(figures: Mapping[str, Any]) -> str:
    """A table of Markdown with the dev figures of the first and the kept step; '' without any."""
    first, last = figures.get("first", {}), figures.get("last", {})
    names = [name for name in first if name.startswith("dev/") and name in last]
    rows = [f"| {n.removeprefix('dev/')} | {first[n]:.3f} | {last[n]:.3f} |" for n in names]
    return "\n".join(["| on dev | before | after |", "|---|---:|---:|", *rows]) if rows else ""
