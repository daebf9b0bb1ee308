"""A training run: what supervision, REINFORCE and PPO share.

    run = Run(module, settings, output=folder, accelerator=accelerator, title="partner")
    with run:
        for step in run.steps():
            sums, norm = run.engine.update(loss, micro_batches)
            run.record({"step": step + 1, "loss": sums[0] / sums[1], "grad_norm": norm})
    best = run.finish()

The run restores the newest checkpoint, seeds every step, sets the learning rate, saves, stops on
SIGTERM, shows progress, writes log.jsonl and tells the accelerator's trackers. Randomness and rows
follow from (seed, step, process), so a run that stops at any step goes on bit for bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from rewriting.errors import UserError
from rewriting.runtime.progress import progress_bar
from rewriting.runtime.seeds import derive_seed, rows_of_step
from rewriting.runtime.training.checkpoints import Checkpoints, Part
from rewriting.runtime.training.engine import Engine
from rewriting.runtime.training.log import Log
from rewriting.runtime.training.settings import RunSettings, check_bounds
from rewriting.runtime.training.weights import Best, MovingAverage, Result


def rate_factor(step: int, steps: int, warmup: float) -> float:
    """Of the learning rate at a step: a line up over the warm-up, then a line down to 0."""
    rising = max(1, round(steps * warmup))
    if step < rising:
        return (step + 1) / rising
    return max(0, steps - step) / max(1, steps - rising)


class Run:
    """One run of one module in one folder.

    settings: bounds are checked here. same: plain values that a resumed run must have too. parts:
    what a checkpoint holds beside the weights, the optimizer and the log. average: decay of the
    moving average of the weights. rate_factors, layers: of the Engine.
    """

    def __init__(
        self,
        module: nn.Module,
        settings: RunSettings,
        *,
        output: Path,
        accelerator: Any,
        title: str,
        same: Mapping[str, Any] | None = None,
        rate_factors: Mapping[str, float] | None = None,
        average: float = 0.0,
        layers: Sequence[str] = (),
    ) -> None:
        check_bounds(settings)
        if settings.batch_size % accelerator.num_processes:
            raise UserError(
                f"a batch of {settings.batch_size} cannot be shared by {accelerator.num_processes} "
                "processes. Make batch_size a multiple of them."
            )
        self.settings, self.accelerator, self.title = settings, accelerator, title
        self.factor = partial(rate_factor, steps=settings.steps, warmup=settings.warmup)
        self.engine = Engine(
            module,
            accelerator,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            schedule=self.factor,
            rate_factors=rate_factors,
            max_grad_norm=settings.max_grad_norm,
            layers=layers,
        )
        self.log = Log(output, accelerator.is_main_process)
        self.best = Best(self.engine.weights)
        self.average = MovingAverage(self.engine.weights, average)
        self.parts: dict[str, Part] = {"module": self.engine.weights, "log": self.log}
        self.parts |= {"optimizer": self.engine.optimizer_state, "scheduler": self.engine.scheduler}
        self.parts |= {"average": self.average, "best": self.best}
        self.checkpoints = Checkpoints(
            output / "checkpoints",
            every=settings.save_every,
            settings=same,
            accelerator=accelerator,
        )
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.checkpoints)
        shown: Any = nullcontext(lambda rows: None)
        if self.accelerator.is_main_process:
            shown = progress_bar(self.title, self.settings.steps)
        self._advance = self._stack.enter_context(shown)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def steps(self) -> Iterator[int]:
        """The steps that are left, each with its seed and its learning rate; saved on the way."""
        shown = 0
        for step in self.checkpoints.steps(self.settings.steps, **self.parts):
            index = self.accelerator.process_index
            torch.manual_seed(derive_seed(self.settings.seed, "step", step, index))
            yield step
            with warnings.catch_warnings():
                # A step may have had nothing to learn from, and taken no optimizer step.
                warnings.filterwarnings("ignore", message="Detected call of .lr_scheduler.step")
                self.engine.scheduler.step()
            self._advance(step + 1 - shown)
            shown = step + 1

    def rows(self, num_rows: int, step: int) -> list[int]:
        """The rows of this process at a step: its share of the batch of all."""
        return rows_of_step(
            num_rows,
            self.settings.batch_size,
            seed=self.settings.seed,
            step=step,
            process=self.accelerator.process_index,
            num_processes=self.accelerator.num_processes,
        )

    def rate(self, step: int) -> float:
        return self.settings.learning_rate * self.factor(step)

    def is_measured(self, done: int) -> bool:
        """Whether dev is measured after so many steps."""
        return done % self.settings.eval_every == 0 or done == self.settings.steps

    def record(self, row: dict[str, float]) -> None:
        """A row for log.jsonl and the trackers, which count the steps of all stages on."""
        self.log.add(row)
        before = getattr(self.accelerator, "steps_of_earlier_stages", 0)
        self.accelerator.log(row, step=before + int(row["step"]))

    def finish(self) -> Result | None:
        """Leave the module plain, with its best weights where they were measured."""
        best = self.best.load()
        self.engine.release()
        before = getattr(self.accelerator, "steps_of_earlier_stages", 0)
        self.accelerator.steps_of_earlier_stages = before + self.settings.steps
        return best
