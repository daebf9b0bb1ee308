"""Reinforcement learning of an edit policy (PARTNER, arXiv 2101.07714), on one process or many.

A step: sample G rewrites of each exchange, score every one of them, ask the reference how likely
each was, turn rewards into advantages, make better samples likelier.

    leave_one_out    REINFORCE; a sample is compared with the others of its exchange
    moving_average   REINFORCE; compared with the average of the steps before, as in the paper
    ppo              as leave_one_out (with a single sample, as moving_average), and the samples
                     are used `inner_epochs` times under PPO's clipping

The KL to the reference is paid for by the episode: what `kl` asks for the position and the tokens
of all its actions is subtracted from its reward, once. So a sample has one number, which others of
its exchange can be compared with. (Paying token by token, each for itself and those after it, has
the same mean; but then late tokens lack the costs that are in the baseline.)

The module stays in evaluation mode: dropout would make the log-probabilities those of another
policy than the one that sampled. Gradients are of sums over all episodes, divided once: how
they are cut into micro-batches or shared by processes changes no loss.

Left out: a value function, which a reward at the end of some ten tokens does not repay; wrappers
for distributed modules (see rewriting/runtime/training/supervised.py); float16, whose gradients would need
scaling.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from accelerate.utils import gather_object
from torch import Tensor

from policies.editing.actions import Agent
from policies.training.advantages import MovingBaseline, leave_one_out, normalised
from policies.training.collapse import new_warnings
from policies.training.policy_update import Penalty, improve, kl_figures
from policies.training.reinforce.curves import plot_curves
from policies.training.reinforce.log import Clock, Outcome, kl_summary, outcomes_of, summary
from policies.training.reinforce.samples import (
    OnSamples,
    SampleFile,
    headline,
    print_samples,
    sample_rows,
)
from policies.training.rollouts import column_names, reward_columns, sample_episodes
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.files import disk_errors
from rewriting.runtime.progress import progress_bar
from rewriting.runtime.seeds import derive_seed, rows_of_step
from rewriting.runtime.training.checkpoints import Checkpoints, Part
from rewriting.runtime.training.log import LossLog
from rewriting.runtime.training.supervised import Best, Trainable, check_replicas, rate_factor

logger = logging.getLogger(__name__)
ESTIMATORS: Final = ("leave_one_out", "moving_average", "ppo")


class Scorer(Protocol):
    """Says how good rewrites are: a `RewardSum`. `update` lets it adapt its scales to them."""

    def score(self, *, completions: Sequence[Any], update: bool = ..., **columns: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of the log, and the number of steps after which the kept weights were reached."""

    rows: list[dict[str, float]]
    step: int


def train(
    agent: Agent,
    reward: Scorer,
    exchanges: Sequence[Exchange],
    *,
    output: Path,
    accelerator: Any,
    steps: int,
    batch_size: int,
    num_samples: int = 4,
    estimator: str = "leave_one_out",
    inner_epochs: int = 1,
    clip: float = 0.2,
    baseline_decay: float = 0.9,
    normalise: bool = False,
    kl: Penalty | None = None,
    entropy_weight: float = 0.0,
    span_length: int = 4,
    max_edits: int = 1,
    learning_rate: float = 1e-5,
    weight_decay: float = 0.0,
    warmup: float = 0.05,
    rate_factors: Mapping[str, float] | None = None,
    max_grad_norm: float = 1.0,
    micro_batch_size: int = 8,
    dev_exchanges: Sequence[Exchange] = (),
    eval_every: int = 50,
    keep_best: bool = False,
    save_every: int = 50,
    show_every: int = 50,
    num_shown: int = 3,
    on_samples: OnSamples | None = print_samples,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    title: str = "reinforce",
) -> Result:
    """Train the agent to earn more reward; its module is left with the last weights, or the best.

    batch_size: exchanges of a step, all processes together; each is sampled num_samples times.
    inner_epochs, clip: of `ppo` alone. baseline_decay: of the moving average. normalise: divide
    the advantages by their size. kl: the price of leaving the role "reference"; None: no KL at all.
    entropy_weight: of the bonus for undecided positions. span_length, max_edits: how a response
    is walked through (rewriting/loop.py). warmup: share of the steps in which the learning rate
    rises; afterwards it falls to 0 on a line. rate_factors: what it is multiplied with for
    parameters whose name holds a word. micro_batch_size: actions in memory at once, for the
    reference and in the update. dev_exchanges: measured before the first step and every eval_every
    steps; with keep_best the weights with the best dev reward are kept (scaled terms move, and
    with them what their totals mean). show_every: steps between two looks at num_shown samples,
    which go to samples.jsonl and to on_samples(title, rows). settings: plain values that a resumed
    run must have too.

    `output` gets checkpoints, log.jsonl (METRICS of log.py), samples.jsonl and curves.png; the
    accelerator's trackers get the log too. A finished run started again returns at once.
    """
    check_replicas(accelerator)
    _check(exchanges, accelerator, batch_size, num_samples, estimator, inner_epochs)
    if keep_best and not dev_exchanges:
        raise UserError("keep_best compares dev rewards: give dev exchanges, or turn it off.")
    weights = Trainable(agent.module.eval())
    groups = weights.groups(rate_factors or {})
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, weight_decay=weight_decay)
    baseline, best = MovingBaseline(baseline_decay), Best(weights)
    log = LossLog(output, accelerator.is_main_process)
    samples = SampleFile(output, accelerator.is_main_process)
    parts: dict[str, Part] = {"module": weights, "optimizer": optimizer, "baseline": baseline}
    parts |= {"log": log, "samples": samples, "best": best}
    stateful = {"reward": reward, "kl": kl}
    parts |= {n: part for n, part in stateful.items() if hasattr(part, "state_dict")}  # type: ignore[misc]
    columns = column_names([*exchanges, *dev_exchanges])
    share = {"process": accelerator.process_index, "num_processes": accelerator.num_processes}
    walk = {"span_length": span_length, "max_edits": max_edits}

    def measure_dev(step: int) -> dict[str, float]:
        figures = dev_figures(agent, reward, dev_exchanges, columns, accelerator, seed, **walk)
        if keep_best and "reward" in figures:
            best.offer(-figures["reward"], step)
        return {f"dev/{name}": value for name, value in figures.items()}

    with (
        Checkpoints(
            output / "checkpoints", every=save_every, settings=settings, accelerator=accelerator
        ) as checkpoints,
        progress_bar(title, steps) if log.writes else nullcontext(lambda rows: None) as advance,
    ):
        shown = 0
        for step in checkpoints.steps(steps, **parts):
            torch.manual_seed(derive_seed(seed, "step", step, accelerator.process_index))
            if step == 0 and dev_exchanges:
                _write(log, {"step": 0} | measure_dev(0), accelerator)
            clock = Clock()

            with clock("sampling"), accelerator.autocast():
                numbers = rows_of_step(len(exchanges), batch_size, seed=seed, step=step, **share)
                episodes = sample_episodes(
                    agent,
                    [exchanges[number] for number in numbers],
                    num_samples=num_samples,
                    seed=seed,
                    step=step,
                    first_row=accelerator.process_index * len(numbers),
                    **walk,
                )
            with clock("rewards"):
                scores = reward.score(update=True, **reward_columns(episodes, columns))
            with clock("reference"), accelerator.autocast():
                kl_E = None
                if kl is not None:
                    kl_E = kl_figures(agent, episodes, kl, micro_batch_size)
            mine = outcomes_of(episodes, scores, kl_E)
            everyone: list[Outcome] = gather_object(mine)

            rewards_NG = paid(everyone).view(batch_size, num_samples)
            if estimator == "moving_average" or num_samples == 1:
                advantages_NG = baseline.advantages(rewards_NG)
            else:
                advantages_NG = leave_one_out(rewards_NG)
            if normalise:
                advantages_NG = normalised(advantages_NG)
            first = accelerator.process_index * len(mine)
            advantages = advantages_NG.flatten()[first : first + len(mine)].tolist()

            with clock("update"):
                rate = learning_rate * rate_factor(step, steps, warmup)
                for group in optimizer.param_groups:
                    group["lr"] = rate * group["factor"]
                progress = improve(
                    agent,
                    weights,
                    optimizer,
                    [(t, a) for e, a in zip(episodes, advantages, strict=True) for t in e.turns],
                    accelerator,
                    num_episodes=len(everyone),
                    inner_epochs=inner_epochs,
                    clip=clip if estimator == "ppo" else None,
                    entropy_weight=entropy_weight,
                    micro_batch_size=micro_batch_size,
                    max_grad_norm=max_grad_norm,
                )

            done = step + 1
            row: dict[str, float] = {"step": done} | summary(everyone, num_samples)
            if kl is not None:
                row |= kl_summary(everyone) | {f"kl/{n}": v for n, v in kl.state_dict().items()}
                kl.update(row["kl_k1"], len(everyone))
            row["advantage"] = float(advantages_NG.abs().mean())
            row |= progress | {"rate": rate} | clock.seconds
            if dev_exchanges and (done % eval_every == 0 or done == steps):
                row |= measure_dev(done)
            _write(log, row, accelerator)
            if accelerator.is_main_process:
                for warning in new_warnings(log.rows):
                    logger.warning("step %d: %s", done, warning)
                if done % show_every == 0 or done == steps:
                    shown_rows = sample_rows(done, episodes, mine, num_samples)[:num_shown]
                    samples.add(shown_rows)
                    if on_samples is not None:
                        on_samples(headline(row), shown_rows)
                    with disk_errors(output):
                        plot_curves(log.rows, output / "curves.png", title)
            advance(done - shown)
            shown = done
        # A finished run that is started again has no step left: it restores and comes here.
    kept = best.load().step if best.state["weights"] else steps
    return Result(log.rows, kept)


def paid(outcomes: Sequence[Outcome]) -> Tensor:
    """[E]: the reward of each episode after the KL penalty; NaN where it has none."""
    if not all(math.isfinite(outcome.penalty) for outcome in outcomes):
        raise UserError(
            "the KL to the reference is infinite: the reference could not have said what the "
            "policy said. Train with top_p 1."
        )
    rewards = [math.nan if o.reward is None else o.reward - o.penalty for o in outcomes]
    return torch.tensor(rewards, dtype=torch.float64)


def dev_figures(
    agent: Agent,
    reward: Scorer,
    exchanges: Sequence[Exchange],
    columns: Sequence[str],
    accelerator: Any,
    seed: int,
    **walk: int,
) -> dict[str, float]:
    """The figures of one sample of each exchange, drawn with the same seeds every time."""
    size = -(-len(exchanges) // accelerator.num_processes)
    first = accelerator.process_index * size
    dev_seed = derive_seed(seed, "dev")
    with accelerator.autocast():
        episodes = sample_episodes(
            agent,
            exchanges[first : first + size],
            num_samples=1,
            seed=dev_seed,
            first_row=first,
            **walk,
        )
    scores = reward.score(update=False, **reward_columns(episodes, columns))
    return summary(gather_object(outcomes_of(episodes, scores)))


def _write(log: LossLog, row: dict[str, float], accelerator: Any) -> None:
    log.add(row)
    accelerator.log(row, step=int(row["step"]))


def _check(
    exchanges: Sequence[Exchange],
    accelerator: Any,
    batch_size: int,
    num_samples: int,
    estimator: str,
    inner_epochs: int,
) -> None:
    """Say what cannot work before any model is asked."""
    if not exchanges:
        raise UserError("there are no exchanges to train on. Check the data and its filters.")
    if estimator not in ESTIMATORS:
        raise UserError(f"there is no estimator {estimator!r}; use {', '.join(ESTIMATORS)}.")
    if estimator == "leave_one_out" and num_samples < 2:
        raise UserError(
            "leave_one_out compares the samples of an exchange: num_samples must be 2 or more. "
            "With one sample use moving_average."
        )
    if min(batch_size, num_samples, inner_epochs) < 1:
        raise UserError("batch_size, num_samples and inner_epochs must be 1 or more.")
    if estimator != "ppo" and inner_epochs > 1:
        raise UserError(
            f"{estimator} may use its samples once; inner_epochs {inner_epochs} needs ppo."
        )
    if batch_size % accelerator.num_processes:
        raise UserError(
            f"a batch of {batch_size} exchanges cannot be shared by {accelerator.num_processes} "
            "processes. Make batch_size a multiple of them."
        )
    if accelerator.mixed_precision == "fp16":
        raise UserError("mixed precision fp16 is not supported here; use bf16 or no.")
