"""What both algorithms share: the rows of a step, dev, what is logged, shown and warned of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from torch import Tensor, nn

from policies.training.curves import plot_curves
from policies.training.figures import Clock
from policies.training.rollouts import column_names
from policies.training.samples import OnSamples, Rows, SampleFile
from policies.training.settings import PolicySettings
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.files import disk_errors
from rewriting.runtime.training.run import Run
from rewriting.runtime.training.settings import check_bounds

logger = logging.getLogger(__name__)
Row = dict[str, float]


class Scorer(Protocol):
    """Says how good rewrites are: a `RewardSum`. `update` lets it adapt its scales to them."""

    def score(self, *, completions: Sequence[Any], update: bool = ..., **columns: Any) -> Any: ...


class Penalty(Protocol):
    """The KL penalty of every token, [B, T]: a `KLPenalty`.

    `update` is told the mean KL of so many new samples, for a weight that adapts.
    """

    def __call__(self, log_prob_BT: Tensor, ref_log_prob_BT: Tensor, mask_BT: Tensor) -> Tensor: ...
    def update(self, kl: float, num_responses: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of the log, and the number of steps after which the kept weights were reached."""

    rows: list[Row]
    step: int


@dataclass(frozen=True, slots=True)
class Looks:
    """How an algorithm's log is read: a row in a few words, its warnings, the panels of curves."""

    headline: Callable[[Row], str]
    new_warnings: Callable[[Sequence[Row]], list[str]]
    panels: Mapping[str, Sequence[str]]
    on_samples: OnSamples | None


def check(
    settings: PolicySettings, accelerator: Any, exchanges: Sequence[Any], dev: Sequence[Any]
) -> None:
    """Say what cannot work before any model is asked."""
    if not exchanges:
        raise UserError("there are no exchanges to train on. Check the data and its filters.")
    check_bounds(settings)
    if settings.keep_best and not dev:
        raise UserError("keep_best compares dev rewards: give dev exchanges, or turn it off.")
    if settings.batch_size % accelerator.num_processes:
        raise UserError(
            f"a batch of {settings.batch_size} exchanges cannot be shared by "
            f"{accelerator.num_processes} processes. Make batch_size a multiple of them."
        )


class PolicyRun:
    """A Run of a policy.

    measure: the figures of some exchanges of this process, which begin at a row of all of them.
    parts: more parts of a checkpoint. options: of the Run, its output and accelerator among them.
    """

    def __init__(
        self,
        module: nn.Module,
        reward: Scorer,
        exchanges: Sequence[Exchange],
        settings: PolicySettings,
        *,
        dev_exchanges: Sequence[Exchange],
        measure: Callable[[Sequence[Exchange], int], Row],
        looks: Looks,
        kl: Penalty | None,
        output: Path,
        **options: Any,
    ) -> None:
        self.exchanges, self.dev_exchanges = exchanges, dev_exchanges
        self.settings, self.measure, self.looks = settings, measure, looks
        self.run = Run(module.eval(), settings, output=output, **options)
        self.engine, self.accelerator = self.run.engine, self.run.accelerator
        self.output, self.columns = output, column_names([*exchanges, *dev_exchanges])
        self.samples = SampleFile(output, self.accelerator.is_main_process)
        self.parts = self.run.parts
        self.parts["samples"] = self.samples
        stateful: dict[str, Any] = {"reward": reward, "kl": kl}
        self.parts |= {n: part for n, part in stateful.items() if hasattr(part, "state_dict")}

    def __enter__(self) -> Self:
        self.run.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.run.__exit__(*error)

    def steps(self) -> Iterator[tuple[int, list[Exchange], int, Clock]]:
        """The steps that are left, each with the exchanges of this process, the place of the first
        one in the batch of all, and a clock. Before the first step dev is measured."""
        for step in self.run.steps():
            if step == 0 and self.dev_exchanges:
                self.run.record({"step": 0} | self._dev(0))
            numbers = self.run.rows(len(self.exchanges), step)
            first_row = self.accelerator.process_index * len(numbers)
            yield step, [self.exchanges[number] for number in numbers], first_row, Clock()

    def _dev(self, done: int) -> Row:
        size = -(-len(self.dev_exchanges) // self.accelerator.num_processes)
        first = self.accelerator.process_index * size
        with self.engine.whole():
            figures = self.measure(self.dev_exchanges[first : first + size], first)
        if self.settings.keep_best and "reward" in figures:
            self.run.best.offer(-figures["reward"], done)
        return {f"dev/{name}": value for name, value in figures.items()}

    def report(self, step: int, row: Row, clock: Clock, samples: Rows) -> None:
        """End a step: dev if it is due, the log, warnings, and a look at samples and curves."""
        done = step + 1
        row = {"step": done} | row | {"rate": self.run.rate(step)} | clock.seconds
        if self.dev_exchanges and self.run.is_measured(done):
            row |= self._dev(done)
        self.run.record(row)
        if not self.accelerator.is_main_process:
            return
        for warning in self.looks.new_warnings(self.run.log.rows):
            logger.warning("step %d: %s", done, warning)
        if done % self.settings.show_every == 0 or done == self.settings.steps:
            shown = samples[: self.settings.num_shown]
            self.samples.add(shown)
            if self.looks.on_samples is not None:
                self.looks.on_samples(self.looks.headline(row), shown)
            with disk_errors(self.output):
                title, panels = self.run.title, self.looks.panels
                plot_curves(self.run.log.rows, self.output / "curves.png", title, panels)

    def finish(self) -> Result:
        """Leave the policy plain, with the best weights where they are asked for."""
        best = self.run.finish()
        return Result(self.run.log.rows, best.step if best else self.settings.steps)


def batches(sizes: Sequence[int], batch_size: int) -> list[list[int]]:
    """The numbers of rows in batches of similar size, so that little is padded.

    Rows of the same size stay in their order: samples of one exchange, whose prompt an agent may
    then read once, stay together.
    """
    order = sorted(range(len(sizes)), key=lambda number: sizes[number])
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
