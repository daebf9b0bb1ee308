"""One supervised training loop for adapters, small heads and whole models.

The caller passes a module, a loss function and rows; the loop knows nothing of what is learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from rewriting.errors import UserError
from rewriting.runtime.plots import plot_curves
from rewriting.runtime.training.engine import Engine, in_batches
from rewriting.runtime.training.run import Run
from rewriting.runtime.training.settings import RunSettings
from rewriting.runtime.training.weights import Result

T = TypeVar("T")
OPTIONS_OF_RUN = ("rate_factors", "average", "layers")
RowsLoss = Callable[[Sequence[T]], tuple[Tensor, float]]
"""Rows → the sum of their losses, and what it is to be divided by (rows, tokens, weights)."""


def train(
    module: nn.Module,
    loss: RowsLoss[T],
    train_rows: Sequence[T],
    dev_rows: Sequence[T],
    *,
    output: Path,
    accelerator: Any,
    settings: Mapping[str, Any] | None = None,
    size: Callable[[T], int] | None = None,
    dev_score: Callable[[], float] | None = None,
    title: str = "training",
    **options: Any,
) -> Result:
    """Train the parameters of `module` that require gradients; leave it with the best ones.

    options: of RunSettings, such as steps, batch_size and learning_rate; and three of Run:
    rate_factors, what the learning rate is multiplied with for parameters whose name holds a word;
    average, the decay of the moving average of the weights that is measured and kept, 0 is the
    weights themselves; layers, what FSDP2 gathers one by one (engine.py, Door). settings: plain
    values that a resumed run must have too. size: the length of a row; micro-batches are then cut
    from rows of similar length. dev_score: called on the module in evaluation mode, what to keep
    the best by, lower is better; by default the loss over `dev_rows`.

    `output` gets checkpoints, log.jsonl, loss.png; a finished run started again returns at once.
    """
    if not train_rows or not dev_rows:
        raise UserError(f"{len(train_rows)} rows to train on and {len(dev_rows)} for dev: too few.")
    if options["steps"] < 1:
        raise UserError(f"{title} needs 1 step or more, not {options['steps']}.")
    of_run = {name: options.pop(name) for name in OPTIONS_OF_RUN if name in options}
    chosen = RunSettings(**{"warmup": 0.1, "eval_every": 100, "save_every": 100} | options)

    def measure() -> tuple[dict[str, float], float]:
        module.eval()
        dev_loss = dev_score() if dev_score else mean_loss(run.engine, loss, dev_batches)
        return {"dev_loss": dev_loss}, dev_loss

    run = Run(
        module, train_rows, chosen, output=output, accelerator=accelerator, title=title,
        measure=measure, same=settings, **of_run,
    )  # fmt: skip
    own = dev_rows[accelerator.process_index :: accelerator.num_processes]
    dev_batches = in_batches(own, chosen.micro_batch_size, size)
    with run:
        for step, rows in run.steps():
            module.train()
            batches = in_batches(rows, chosen.micro_batch_size, size)
            sums, norm = run.engine.update(loss, batches, name=f"step {step + 1}")
            run.average.update()
            run.record(step, {"loss": sums[0] / sums[1], "grad_norm": norm or 0.0})
        # A finished run that is started again has no step left: it restores and comes here.
    if accelerator.is_main_process:
        panels = {"loss": ["loss", "dev_loss"]}
        if any(row.get("dev_loss", 0.0) < 0 for row in run.log.rows):
            # A score, not a loss: on the same axis it would flatten both.
            panels = {"loss": ["loss"], "dev score, lower is better": ["dev_loss"]}
        plot_curves(run.log.rows, output / "loss.png", title, panels)
    best = run.finish()
    assert best is not None  # the last step is always measured
    return best


@torch.no_grad()
def mean_loss(engine: Engine, loss: RowsLoss[T], batches: Sequence[Sequence[T]]) -> float:
    """The loss over the rows of all processes."""
    with engine.accelerator.autocast():
        found = [(float(total), weight) for total, weight in map(loss, batches)]
    sums = [sum(column) for column in zip(*found, strict=True)] or [0.0, 0.0]
    total, weight = engine.total(sums)
    return total / weight
