"""The accelerator of a recipe, and the share of a batch that each of its processes gets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from rewriting.errors import UserError


def share_of(name: str, size: int, num_processes: int) -> int:
    """How many of a setting that counts all processes each one gets; an uneven share is refused."""
    if size % num_processes:
        raise UserError(
            f"{name} {size} cannot be shared by {num_processes} processes. Make it a multiple of "
            "them."
        )
    return size // num_processes


def supervised_accelerator() -> Any:
    """The accelerator of a recipe without trackers; models are loaded whole, and then sharded."""
    from accelerate import Accelerator

    from rewriting.runtime.training.sharding import load_models_whole

    accelerator = Accelerator()
    load_models_whole(accelerator)
    return accelerator


def start_accelerator(title: str, config: Any, settings: Mapping[str, Any]) -> Any:
    """The accelerator, with trackers where they were asked for; they are told the settings."""
    from accelerate import Accelerator
    from accelerate.utils import InitProcessGroupKwargs

    from rewriting.runtime.training.sharding import load_models_whole

    trackers = [name.strip() for name in config.report_to.split(",") if name.strip()]
    patience = timedelta(minutes=config.timeout_minutes)
    try:
        accelerator = Accelerator(
            log_with=trackers or None,
            project_dir=config.output,
            kwargs_handlers=[InitProcessGroupKwargs(timeout=patience)],
        )
        if trackers:
            told = dict(settings) | {"rewards": str(config.rewards)}
            accelerator.init_trackers(title, config=told)
    except (ValueError, ImportError) as error:
        raise UserError(f"report_to {config.report_to}: {error}") from error
    load_models_whole(accelerator)
    return accelerator
