"""The log of both algorithms: what every figure says, and how people are shown it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from policies.training.collapse import new_warnings
from policies.training.settings import PolicySettings
from rewriting.exchange import Exchange
from rewriting.report.plots import plot_curves
from rewriting.runtime.files import disk_errors
from rewriting.runtime.training.log import write_lines
from rewriting.runtime.training.run import Run

logger = logging.getLogger(__name__)
Rows = Sequence[Mapping[str, Any]]
OnSamples = Callable[[str, Rows], None]
"""Called with a title and rows of samples.jsonl."""


@dataclass(frozen=True, slots=True)
class Looks:
    """How the log of an algorithm is read."""

    metrics: Mapping[str, str]
    """Figure → what it says. A star stands for names that depend on the run."""
    panels: Mapping[str, Sequence[str]]
    """Of the picture with the curves, after those of the rewards."""
    headline: Sequence[str]
    """The figures that stand for a row in a few words."""


FIRST: Final[Mapping[str, str]] = {
    "step": "Steps done. Row 0, where there are dev exchanges, is the policy as it began.",
    "reward": "Mean reward of a sample: the weighted sum of the terms, without any penalty.",
    "reward_std": "Standard deviation of that reward over all samples of the step.",
    "rewards/*": "Mean of a reward term as it gave it, before scale and weight.",
    "rewards/*/*": "Mean of a part that a term reports: `empathy_change` has each mechanism's.",
    "kl_k1": "KL to the reference per sample, log π − log π_ref summed over positions and tokens.",
    "kl_k3": "The same by an estimator that is never negative and less noisy.",
    "kl_penalty": "What was subtracted from the reward of a sample for it.",
    "kl/*": "State of the KL controller; `kl/value` is its coefficient β.",
}
LAST: Final[Mapping[str, str]] = {
    "clipped": "Share of tokens that PPO's clipping left without a gradient.",
    "grad_norm": "Norm of the gradient before clipping, averaged over the updates.",
    "rate": "Learning rate.",
    "seconds_*": "Time for sampling, rewards, reference and update, in the first process.",
    "dev/*": "The same figures on the dev exchanges, one sample each, always with the same seeds.",
}

REINFORCE: Final = Looks(
    metrics={
        **FIRST,
        "reward_spread": "The same among the samples of an exchange, averaged: what can be learnt.",
        "share_insert": "Share of the actions that insert a sentence.",
        "share_replace": "Share of the actions that replace one.",
        "share_keep": "Share of the actions that change nothing.",
        "actions": "Actions of an episode: spans, times the edits that each of them got.",
        "sentence_tokens": "Mean length of the new sentences, in tokens, the ending one included.",
        "sentence_words": "The same in words.",
        "distinct_sentences": "1: all new sentences of the step differ; 0: all are the same.",
        "share_questions": "Share of the new sentences that are questions.",
        "share_opening": "Share of the new sentences that begin with the commonest three words.",
        "position_entropy": "Mean entropy of the choice of a position, in nats.",
        "token_entropy": "Mean entropy of a token of a sentence, in nats, estimated by −log π.",
        "advantage": "Mean size of the advantages. 0: nothing to learn from this step.",
        "loss": "The policy loss per episode, averaged over the updates. Its level means little.",
        **LAST,
    },
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
    metrics={
        **FIRST,
        "response_tokens": "Mean length of a response in tokens, the ending one included.",
        "response_words": "The same in words.",
        "unfinished": "Share of the responses that were cut off before they ended.",
        "distinct_responses": "1: all responses of the step differ; 0: all are the same.",
        "share_questions": "Share of the responses that ask something.",
        "share_opening": "Share of the responses that begin with the commonest three words.",
        "entropy": "Mean entropy of the distribution of a token, in nats.",
        "value": "What the value head expected before a token, on average.",
        "return": "What was to come from there on, on average: the value head's target.",
        "explained_variance": "How much of the returns the value head foresaw: 1 all, 0 nothing.",
        "advantage": "Mean size of the advantages before whitening. 0: nothing to learn here.",
        "policy_loss": "PPO's clipped policy loss per token, averaged over the updates.",
        "value_loss": "The value head's loss per token, averaged over the updates.",
        "update_kl": "KL from the policy that sampled to the updated one, per token, averaged.",
        "updates": "Optimizer steps: inner epochs × minibatches, fewer where the KL stopped them.",
        **LAST,
    },
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
    """A row of the log in a few words."""
    known = [f"{key} {row[key]:.3f}" for key in looks.headline if key in row]
    return f"step {row['step']:.0f}: {', '.join(known)}"


def sample_row(
    step: int, exchange: Exchange, rewritten: str, outcome: Any, **more: Any
) -> dict[str, Any]:
    """A line of samples.jsonl."""
    return {
        "step": step,
        "id": exchange.id,
        "seeker_post": exchange.seeker_post,
        "response_post": exchange.response_post,
        "rewritten_response": rewritten,
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
            with disk_errors(run.output):
                plot_curves(rows, run.output / "curves.png", run.title, self.looks.panels)
