"""What the supervised recipes share: fields of their settings, the call of the training loop, and
how calibrated models get their temperature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from recipes.shared.accelerator import finish_trackers
from recipes.shared.settings import same_settings
from rewriting.runtime.settings import setting

if TYPE_CHECKING:
    from rewriting.runtime.training.supervised import RowsLoss
    from rewriting.runtime.training.weights import Result

TEMPERATURES: Final = [math.exp(place / 50) for place in range(-100, 101)]  # 0.14 … 7.4
"""The grid that recipes choose the temperature of a calibrated model from."""
TUNED: Final[dict[str, Any]] = {
    "weight_decay": 0.01,
    "rate_factors": {"head": 2.0},
    "average": 0.98,
}
"""How an encoder with LoRA and its heads are trained, whatever they learn."""


@dataclass(frozen=True, kw_only=True)
class Supervised:
    """Fields that several supervised recipes borrow, each with a default of its own."""

    data: str = setting(
        "sample",
        "Exchanges to train on: files, folders, hub ids or sample, separated by commas.",
    )
    labelled_data: str = setting(
        "sample",
        "Labelled exchanges to train on: files, folders, hub ids or sample, separated by commas.",
    )
    appraised_data: str = setting(
        "sample", "Appraised exchanges: a file in ALOE's format, or sample."
    )
    max_rows: int = setting(
        0,
        "Maximum number of exchanges taken from each source and split, drawn at random; 0: all.",
    )
    encoder: str = setting("minilm-l6", "Encoder: a short name, a folder or a hub id.")
    sentence_encoder: str = setting(
        "minilm-l6", "Sentence encoder: a short name, a folder or a hub id."
    )
    layers: int = setting(0, "Number of encoder layers that are used, from the first; 0: all.")
    rank: int = setting(16, "Rank of the LoRA matrices.")
    steps: int = setting(400, "Optimizer steps.")
    batch_size: int = setting(16, "Exchanges per optimizer step, over all processes.")
    micro_batch_size: int = setting(
        8, "Exchanges in memory at once, per process; it changes no result."
    )
    learning_rate: float = setting(1e-3, "Peak learning rate, after the linear warm-up.")
    weight_decay: float = setting(0.01, "Weight decay of AdamW.")
    warmup: float = setting(
        0.05,
        "Share of the steps over which the learning rate rises linearly; then it falls linearly "
        "to 0.",
    )
    max_grad_norm: float = setting(1.0, "Gradients are clipped to this norm.")
    eval_every: int = setting(50, "Steps between two measurements of the dev loss.")
    save_every: int = setting(50, "Steps between two checkpoints.")
    seed: int = setting(0, "The same seed gives the same model.")


def output_field(recipe: str, what: str = "model") -> Any:
    """The setting `output` of a recipe: its folder under runs/."""
    told = (
        f"Folder for the {what}, checkpoints, log and loss curve. Give the same folder again to "
        "resume a run."
    )
    return field(default=f"runs/{recipe}", metadata={"help": told})


def by_epochs(config: Any, num_rows: int) -> dict[str, int]:
    """The options of a run of whole passes over the rows, which is measured after each of them."""
    steps = max(1, num_rows // config.batch_size)
    return {
        "steps": config.epochs * steps,
        "micro_batch_size": config.batch_size,
        "eval_every": steps,
        "save_every": steps,
    }


def train_supervised(
    recipe: str,
    config: Any,
    accelerator: Any,
    module: Any,
    loss: RowsLoss[Any],
    rows: Sequence[Any],
    dev_rows: Sequence[Any],
    *,
    chosen_afterwards: Sequence[str] = (),
    **options: Any,
) -> Result:
    """Train a module with what the config says of a run; the best step.

    chosen_afterwards: fields that training does not depend on. options: of the loop, and of a run
    where the config has no field of that name, or another meaning for it.
    """
    from rewriting.runtime.training.settings import RunSettings
    from rewriting.runtime.training.supervised import train

    names = [one.name for one in fields(RunSettings) if hasattr(config, one.name)]
    best = train(
        module,
        loss,
        rows,
        dev_rows,
        output=Path(config.output),
        accelerator=accelerator,
        settings=same_settings(config, *chosen_afterwards),
        title=recipe,
        **{name: getattr(config, name) for name in names} | options,
    )
    finish_trackers(accelerator)
    return best
