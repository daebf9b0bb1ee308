"""A training run: what supervision, REINFORCE and PPO share.

    run = Run(module, rows, settings, output=folder, accelerator=accelerator, title="partner")
    with run:
        for step, rows in run.steps():
            sums, norm = run.engine.update(loss, micro_batches)
            run.record(step, {"loss": sums[0] / sums[1], "grad_norm": norm})
    best = run.finish()

The run restores the newest checkpoint, seeds every step, sets the learning rate, measures dev,
saves, stops on SIGTERM, shows progress, writes log.jsonl and tells the accelerator's trackers.
Randomness and rows follow from (seed, step, process), so a run that stops at any step goes on bit
for bit.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from torch import nn

from rewriting.runtime.progress import progress_bar
from rewriting.runtime.seeds import derive_seed, rows_of_step
from rewriting.runtime.training.checkpoints import Checkpoints, Part
from rewriting.runtime.training.engine import Engine
from rewriting.runtime.training.log import Log
from rewriting.runtime.training.settings import RunSettings, check_run
from rewriting.runtime.training.weights import Best, MovingAverage, Result

Row = dict[str, float]
Measure = Callable[[], tuple[Row, float | None]]
"""Dev: its figures, and what the best weights are kept by. Lower is better; None: not compared."""


def rate_factor(step: int, steps: int, warmup: float) -> float:
    """Of the learning rate at a step: a line up over the warm-up, then a line down to 0."""
    rising = max(1, round(steps * warmup))
    if step < rising:
        return (step + 1) / rising
    return max(0, steps - step) / max(1, steps - rising)


class Run:
    """One run of one module over some rows, in one folder.

    settings: bounds are checked here. measure: dev, every eval_every steps and after the last one;
    measure_start: before the first step too. same: plain values that a resumed run must have too.
    average: decay of the moving average of the weights. rate_factors, layers: of the Engine.
    """

    def __init__(
        self,
        module: nn.Module,
        rows: Sequence[Any],
        settings: RunSettings,
        *,
        output: Path,
        accelerator: Any,
        title: str,
        measure: Measure | None = None,
        measure_start: bool = False,
        same: Mapping[str, Any] | None = None,
        rate_factors: Mapping[str, float] | None = None,
        average: float = 0.0,
        layers: Sequence[str] = (),
    ) -> None:
        check_run(settings, accelerator.num_processes)
        self.all_rows, self.measure, self.measure_start = rows, measure, measure_start
        self.output, self.seconds = output, Row()
        self.settings, self.accelerator, self.title = settings, accelerator, title
        self.factor = partial(rate_factor, steps=settings.steps, warmup=settings.warmup)
        self.engine = Engine(
            module, accelerator, schedule=self.factor, rate_factors=rate_factors, layers=layers,
            learning_rate=settings.learning_rate, weight_decay=settings.weight_decay,
            max_grad_norm=settings.max_grad_norm,
        )  # fmt: skip
        self.log = Log(output, accelerator.is_main_process)
        self.best = Best(self.engine.weights)
        self.average = MovingAverage(self.engine.weights, average)
        self.parts: dict[str, Part] = {"module": self.engine.weights, "log": self.log}
        self.parts |= {"optimizer": self.engine.optimizer_state, "scheduler": self.engine.scheduler}
        self.parts |= {"average": self.average, "best": self.best}
        folder, every = output / "checkpoints", settings.save_every
        self.checkpoints = Checkpoints(folder, every=every, settings=same, accelerator=accelerator)
        self._stack = ExitStack()

    def add_parts(self, **parts: Any) -> None:
        """More that a checkpoint holds. What has no state, None among it, is left out."""
        self.parts |= {name: part for name, part in parts.items() if hasattr(part, "state_dict")}

    def __enter__(self) -> Self:
        self._stack.enter_context(self.checkpoints)
        shown: Any = nullcontext(lambda rows: None)
        if self.accelerator.is_main_process:
            shown = progress_bar(self.title, self.settings.steps)
        self._advance = self._stack.enter_context(shown)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def steps(self) -> Iterator[tuple[int, list[Any]]]:
        """The steps that are left, each with the rows of this process, its share of the batch.

        A step has its own seed and learning rate. Checkpoints are saved on the way.
        """
        settings, shown = self.settings, 0
        index, count = self.accelerator.process_index, self.accelerator.num_processes
        for step in self.checkpoints.steps(settings.steps, **self.parts):
            torch.manual_seed(derive_seed(settings.seed, "step", step, index))
            if step == 0 and self.measure_start and self.measure is not None:
                self._write({"step": 0} | self._measured(0))
            self.seconds = {}
            numbers = rows_of_step(
                len(self.all_rows), settings.batch_size,
                seed=settings.seed, step=step, process=index, num_processes=count,
            )  # fmt: skip
            yield step, [self.all_rows[number] for number in numbers]
            with warnings.catch_warnings():
                # A step may have had nothing to learn from, and taken no optimizer step.
                warnings.filterwarnings("ignore", message="Detected call of .lr_scheduler.step")
                self.engine.scheduler.step()
            self._advance(step + 1 - shown)
            shown = step + 1

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """How long a part of a step took goes into its row as seconds_NAME."""
        start = time.perf_counter()
        yield
        self.seconds[f"seconds_{name}"] = time.perf_counter() - start

    def record(self, step: int, row: Row) -> None:
        """End a step: its row, with rate, times and, where it is due, dev, goes to the log."""
        done = step + 1
        rate = self.settings.learning_rate * self.factor(step)
        row = {"step": done} | row | {"rate": rate} | self.seconds
        if done % self.settings.eval_every == 0 or done == self.settings.steps:
            row |= self._measured(done)
        self._write(row)

    def _measured(self, done: int) -> Row:
        if self.measure is None:
            return {}
        with self.average.in_place(), self.engine.whole():
            figures, loss = self.measure()
            if loss is not None:
                self.best.offer(loss, done)
        return figures

    def _write(self, row: Row) -> None:
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
