"""The accelerator of a recipe, and the share of a batch that each of its processes gets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from rewriting.errors import UserError
from rewriting.runtime.settings import lasting


def share_of(name: str, size: int, num_processes: int) -> int:
    """How many of a setting that counts all processes each one gets; an uneven share is refused."""
    if size % num_processes:
        raise UserError(
            f"{name} {size} cannot be shared by {num_processes} processes. Make it a multiple of "
            "them."
        )
    return size // num_processes


def supervised_accelerator(title: str, config: Any) -> Any:
    """The accelerator of a supervised recipe, with trackers where they were asked for."""
    told = {name: value for name, value in lasting(config).items() if name != "output"}
    return _started(title, config, told)


def start_accelerator(title: str, config: Any, settings: Mapping[str, Any]) -> Any:
    """The accelerator of reinforcement learning, which waits so long for other processes."""
    from accelerate.utils import InitProcessGroupKwargs

    patience = InitProcessGroupKwargs(timeout=timedelta(minutes=config.timeout_minutes))
    told = dict(settings) | {"rewards": str(config.rewards)}
    return _started(title, config, told, patience)


def _started(title: str, config: Any, told: Mapping[str, Any], *handlers: Any) -> Any:
    """The accelerator with its trackers, told the settings; models are loaded whole, and then
    sharded."""
    from accelerate import Accelerator

    from rewriting.runtime.training.sharding import load_models_whole

    trackers = trackers_of(config.report_to)
    try:
        accelerator = Accelerator(
            log_with=trackers or None, project_dir=config.output, kwargs_handlers=list(handlers)
        )
        if trackers:
            accelerator.init_trackers(title, config=dict(told))
    except (ValueError, ImportError) as error:
        raise UserError(f"report_to {config.report_to}: {error}") from error
    load_models_whole(accelerator)
    return accelerator


def trackers_of(report_to: str) -> list[str]:
    """The names in `report_to`. accelerate would leave out one that is not installed, silently."""
    from accelerate.tracking import get_available_trackers
    from accelerate.utils import LoggerType

    names = [name.strip() for name in report_to.split(",") if name.strip()]
    installed = [str(name) for name in get_available_trackers()]
    for name in names:
        if name in LoggerType.list() and name not in (*installed, "all"):
            raise UserError(f"report_to {name}: it is not installed. `pip install {name}` does it.")
    return names


def finish_trackers(accelerator: Any) -> None:
    """Let the trackers write what they still hold. Only that: `end_training` would also part the
    processes, whose models are still to be measured."""
    for tracker in accelerator.trackers:
        tracker.finish()


def track_figures(accelerator: Any, figures: Mapping[str, Any]) -> None:
    """Tell the trackers the figures of a recipe that fits at once, without steps."""
    accelerator.log(flat_figures(figures), step=0)
    finish_trackers(accelerator)


def flat_figures(figures: Any, name: str = "") -> dict[str, float]:
    """The numbers of nested figures, each by its path, such as results/0/figures/n."""
    if isinstance(figures, bool) or not isinstance(figures, Mapping | list | tuple | int | float):
        return {}
    if isinstance(figures, int | float):
        return {name: float(figures)}
    items = figures.items() if isinstance(figures, Mapping) else enumerate(figures)
    found: dict[str, float] = {}
    for key, value in items:
        found |= flat_figures(value, f"{name}/{key}" if name else str(key))
    return found
