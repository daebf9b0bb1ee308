"""How people are shown the log of both algorithms: warnings, samples, curves.

docs/partner.md and docs/ppo.md say what every figure of log.jsonl means.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from policies.training.settings import PolicySettings
from rewriting.exchange import Rewrite
from rewriting.report.collapse import new_warnings
from rewriting.runtime.files.disk import disk_errors
from rewriting.runtime.plots import plot_curves
from rewriting.runtime.training.log import write_lines
from rewriting.runtime.training.run import Run

logger = logging.getLogger(__name__)
Rows = Sequence[Mapping[str, Any]]
OnSamples = Callable[[str, Rows], None]
"""Called with a title and rows of samples.jsonl."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Which figures of an algorithm's log are drawn, and which stand in its short lines."""

    panels: Mapping[str, Sequence[str]]
    """Of the picture with the curves, after those of the rewards."""
    headline: Sequence[str]
    """The figures that stand for a row in a few words."""


REINFORCE: Final = Looks(
    panels={
        "KL to the reference": ("kl_k1", "kl_k3"),
        "actions": ("share_insert", "share_replace", "share_keep"),
        "new sentences, tokens": ("sentence_tokens",),
        "distinct sentences": ("distinct_sentences",),
        "one trick": ("share_questions", "share_opening"),
        "entropy of the position": ("position_entropy",),
        "entropy of a token": ("token_entropy",),
    },
    headline=("reward", "kl_k1", "share_keep", "distinct_sentences"),
)
PPO: Final = Looks(
    panels={
        "KL to the reference": ("kl_k1", "kl_k3"),
        "responses, tokens": ("response_tokens",),
        "unfinished": ("unfinished",),
        "distinct responses": ("distinct_responses",),
        "one trick": ("share_questions", "share_opening"),
        "entropy of a token": ("entropy",),
        "foreseen by the value head": ("explained_variance",),
        "clipped": ("clipped",),
    },
    headline=("reward", "kl_k1", "response_tokens", "distinct_responses"),
)


def headline(row: Mapping[str, float], looks: Looks) -> str:
    """One line that sums up a row of the log, for the terminal."""
    known = [f"{key} {row[key]:.3f}" for key in looks.headline if key in row]
    return f"step {row['step']:.0f}: {', '.join(known)}"


def sample_row(step: int, rewrite: Rewrite, outcome: Any, **more: Any) -> dict[str, Any]:
    """A line of samples.jsonl."""
    exchange = rewrite.exchange
    return {
        "step": step + 1,
        "id": exchange.id,
        "seeker_post": exchange.seeker_post,
        "response_post": exchange.response_post,
        "rewritten_response": rewrite.rewritten_response,
        **more,
        "reward": outcome.reward,
        "rewards": dict(outcome.terms),
        "kl": outcome.k1,
    }


class SampleFile:
    """samples.jsonl. What a stopped run wrote after its last checkpoint is taken out again.

    A part of the checkpoint by the number of its lines.
    """

    def __init__(self, folder: Path, writes: bool) -> None:
        self.path = folder / "samples.jsonl"
        self.writes = writes
        self.num_lines = 0

    def add(self, rows: Rows) -> None:
        if self.writes and rows:
            write_lines(self.path, rows, "a" if self.num_lines else "w")
        self.num_lines += len(rows)

    def state_dict(self) -> dict[str, int]:
        return {"num_lines": self.num_lines}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        self.num_lines = state["num_lines"]
        if self.writes and self.path.is_file():
            with disk_errors(self.path), self.path.open("r+", encoding="utf-8") as file:
                lines = [file.readline() for _ in range(self.num_lines)]
                file.seek(0)
                file.writelines(lines)
                file.truncate()


class Display:
    """What people see of a run: warnings, and now and then samples and curves."""

    def __init__(
        self, run: Run, settings: PolicySettings, looks: Looks, on_samples: OnSamples | None
    ) -> None:
        self.run, self.settings, self.looks, self.on_samples = run, settings, looks, on_samples
        self.file = SampleFile(run.output, run.accelerator.is_main_process)
        run.add_parts(samples=self.file)

    def show(self, samples: Rows) -> None:
        """After a step that the log has got already."""
        run, rows, done = self.run, self.run.log.rows, int(self.run.log.rows[-1]["step"])
        if not run.accelerator.is_main_process:
            return
        for warning in new_warnings(rows):
            logger.warning("step %d: %s", done, warning)
        if done % self.settings.show_every == 0 or done == self.settings.steps:
            shown = samples[: self.settings.num_shown]
            self.file.add(shown)
            if self.on_samples is not None:
                self.on_samples(headline(rows[-1], self.looks), shown)
            plot_curves(rows, run.output / "curves.png", run.title, self.looks.panels)
