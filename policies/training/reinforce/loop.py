"""Reinforcement learning of an edit policy (PARTNER, arXiv 2101.07714).

A step: sample G rewrites of each exchange, score every one of them, ask the reference how likely
each was, turn rewards into advantages, make better samples likelier.

    leave_one_out    REINFORCE; a sample is compared with the others of its exchange
    moving_average   REINFORCE; compared with the average of the steps before, as in the paper
    ppo              as leave_one_out (with a single sample, as moving_average), and the samples
                     are used `inner_epochs` times under PPO's clipping

The KL penalty is the episode's: what `kl` asks for the position and the tokens of all its actions
is subtracted from its reward, once. So a sample has one number, which others of its exchange can be
compared with. (A penalty token by token, each for itself and those after it, has the same mean; but
then late tokens lack the costs that are in the baseline.)

The module stays in evaluation mode: dropout would make the log-probabilities those of another
policy than the one that sampled.

Left out: a value function, which a reward at the end of some ten tokens does not repay.

Legend: N exchanges, G samples of each, B actions, T tokens of an action, its position as the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from accelerate.utils import gather_object
from torch import Tensor

from policies.editing.actions import Agent
from policies.training import objective
from policies.training.contracts import Penalty, Result, Scorer
from policies.training.display import REINFORCE, Display, OnSamples, sample_row
from policies.training.figures import check_kl, dev_figures
from policies.training.reinforce import rollouts
from policies.training.reinforce.rollouts import Episode, Outcome, Turn
from policies.training.reinforce.settings import Settings
from policies.training.settings import check
from rewriting.data.columns import column_names
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.processes import own_share
from rewriting.runtime.seeds import derive_seed
from rewriting.runtime.training.engine import Engine, in_batches
from rewriting.runtime.training.run import Run
from rewriting.show import print_samples

ESTIMATORS: Final = ("leave_one_out", "moving_average", "ppo")
Credited = tuple[Turn, float, float]
"""A turn, the advantage of its position, and that of its sentence."""


def train(
    agent: Agent,
    reward: Scorer,
    exchanges: Sequence[Exchange],
    settings: Settings,
    *,
    output: Path,
    accelerator: Any,
    kl: Penalty | None = None,
    dev_exchanges: Sequence[Exchange] = (),
    on_samples: OnSamples | None = print_samples,
    rate_factors: Mapping[str, float] | None = None,
    same: Mapping[str, Any] | None = None,
    title: str = "reinforce",
) -> Result:
    """Train the agent to earn more reward; its module is left with the last weights, or the best.

    kl: the KL penalty against the role "reference"; None: no KL at all. dev_exchanges: measured
    before the first step and every eval_every steps. on_samples(title, rows): gets what goes to
    samples.jsonl. rate_factors: what the learning rate is multiplied with for parameters whose name
    holds a word. same: plain values that a resumed run must have too.

    `output` gets checkpoints, log.jsonl (docs/partner.md), samples.jsonl and curves.png; the
    accelerator's trackers get the log too. A finished run started again returns at once.
    """
    check_settings(settings, accelerator, exchanges, dev_exchanges)
    columns = column_names([*exchanges, *dev_exchanges])
    walk = {"span_length": settings.span_length, "max_edits": settings.max_edits}
    dev = partial(measure, agent, reward, dev_exchanges, columns, settings, accelerator)
    run = Run(
        agent.module.eval(), exchanges, settings, output=output, accelerator=accelerator,
        title=title, measure=dev if dev_exchanges else None, measure_start=True, same=same,
        rate_factors=rate_factors, layers=getattr(agent, "layers", ()),
    )  # fmt: skip
    baseline = objective.MovingBaseline(settings.baseline_decay)
    run.add_parts(reward=reward, kl=kl, baseline=baseline)
    display = Display(run, settings, REINFORCE, on_samples)
    with run:
        for step, rows in run.steps():
            first_row = accelerator.process_index * len(rows)
            with run.engine.whole():
                with run.timed("sampling"), accelerator.autocast():
                    seeds = {"seed": settings.seed, "step": step, "first_row": first_row}
                    episodes = rollouts.sample_episodes(
                        agent,
                        rows,
                        num_samples=settings.num_samples,
                        sentences_per_position=settings.sentences_per_position,
                        **seeds,
                        **walk,
                    )
                with run.timed("rewards"):
                    scores = reward.score(update=True, **rollouts.reward_columns(episodes, columns))
                with run.timed("reference"), accelerator.autocast():
                    kl_E = None
                    if kl is not None:
                        kl_E = rollouts.kl_figures(agent, episodes, kl, settings.micro_batch_size)
            local_outcomes = rollouts.outcomes_of(episodes, scores, kl_E)
            all_outcomes: list[Outcome] = gather_object(local_outcomes)

            rewards_NG = penalised_rewards(all_outcomes).view(-1, settings.num_samples)
            place_NG, own_NG = advantages_of(rewards_NG, baseline, settings)
            first = first_row * settings.num_samples
            own = slice(first, first + len(episodes))
            with run.timed("update"):
                turns = credited(episodes, place_NG.flatten()[own], own_NG.flatten()[own])
                figures = improve(run.engine, agent, turns, len(all_outcomes), settings, step)

            row = rollouts.summary(all_outcomes, settings.num_samples)
            if kl is not None:
                row |= {f"kl/{name}": value for name, value in kl.state_dict().items()}
                row |= rollouts.kl_summary(all_outcomes)
                kl.update(row["kl_k1"], len(all_outcomes))
            run.record(step, row | {"advantage": float(own_NG.abs().mean())} | figures)
            display.show(sample_rows(step, episodes, local_outcomes, settings.num_samples))
    best = run.finish()
    return Result(run.log.rows, best.step if best else settings.steps)


def check_settings(
    settings: Settings, accelerator: Any, exchanges: Sequence[Any], dev: Sequence[Any]
) -> None:
    """Say what cannot work before any model is asked."""
    check(settings, accelerator, exchanges, dev)
    estimator = settings.estimator
    if estimator not in ESTIMATORS:
        raise UserError(f"there is no estimator {estimator!r}; use {', '.join(ESTIMATORS)}.")
    if estimator == "leave_one_out" and settings.num_samples < 2:
        raise UserError(
            "leave_one_out compares the samples of an exchange: num_samples must be 2 or more. "
            "With one sample use moving_average."
        )
    sharing = settings.sentences_per_position
    if sharing > 1 and (estimator == "moving_average" or settings.num_samples < 2 * sharing):
        raise UserError(
            f"sentences_per_position {sharing} compares positions with each other: it needs "
            f"leave_one_out or ppo, and num_samples of {2 * sharing} or more."
        )
    if settings.num_samples % sharing:
        raise UserError(
            f"num_samples {settings.num_samples} is no multiple of sentences_per_position "
            f"{sharing}."
        )
    if estimator != "ppo" and settings.inner_epochs > 1:
        raise UserError(
            f"{estimator} may use its samples once; inner_epochs {settings.inner_epochs} needs ppo."
        )


def measure(
    agent: Agent,
    reward: Scorer,
    dev_exchanges: Sequence[Exchange],
    columns: Sequence[str],
    settings: Settings,
    accelerator: Any,
) -> tuple[dict[str, float], float | None]:
    """The figures of one sample of each exchange, drawn with the same seeds every time."""
    rows, first_row = own_share(dev_exchanges)
    seeds = {"seed": derive_seed(settings.seed, "dev"), "first_row": first_row}
    walk = {"span_length": settings.span_length, "max_edits": settings.max_edits}
    with accelerator.autocast():
        episodes = rollouts.sample_episodes(agent, rows, num_samples=1, **seeds, **walk)
    scores = reward.score(update=False, **rollouts.reward_columns(episodes, columns))
    outcomes = gather_object(rollouts.outcomes_of(episodes, scores))
    return dev_figures(rollouts.summary(outcomes), settings.keep_best)


def penalised_rewards(outcomes: Sequence[Outcome]) -> Tensor:
    """[E]: the reward of each episode after the KL penalty; NaN where it has none."""
    check_kl([outcome.penalty for outcome in outcomes])
    rewards = [math.nan if o.reward is None else o.reward - o.penalty for o in outcomes]
    return torch.tensor(rewards, dtype=torch.float64)


def advantages_of(
    rewards_NG: Tensor, baseline: objective.MovingBaseline, settings: Settings
) -> tuple[Tensor, Tensor]:
    """Twice [N, G]: how much better each sample did than was to be expected, for its first
    position and for the rest of it."""
    if settings.sentences_per_position > 1:
        found = objective.credit_of_positions(rewards_NG, settings.sentences_per_position)
    elif settings.estimator == "moving_average" or settings.num_samples == 1:
        found = (baseline.advantages(rewards_NG),) * 2
    else:
        found = (objective.leave_one_out(rewards_NG),) * 2
    if settings.normalise:
        both = objective.normalised(torch.stack(found))
        found = (both[0], both[1])
    return found


def credited(episodes: Sequence[Episode], place_E: Tensor, own_E: Tensor) -> list[Credited]:
    """The turns of all episodes. The first position has a credit of its own; all else the other."""
    return [
        (turn, rest if number else place, rest)
        for episode, place, rest in zip(episodes, place_E.tolist(), own_E.tolist(), strict=True)
        for number, turn in enumerate(episode.turns)
    ]


def sample_rows(
    step: int, episodes: Sequence[Episode], outcomes: Sequence[Outcome], num_samples: int
) -> list[dict[str, Any]]:
    """The first of the `num_samples` samples of every exchange, as lines of samples.jsonl."""
    firsts = list(zip(episodes, outcomes, strict=True))[::num_samples]
    return [
        sample_row(step, episode.rewrite, outcome, edits=[e.row() for e in episode.rewrite.edits])
        for episode, outcome in firsts
    ]


def improve(
    engine: Engine,
    agent: Agent,
    turns: Sequence[Credited],
    num_episodes: int,
    settings: Settings,
    step: int,
) -> dict[str, float]:
    """Optimizer steps on turns with their credit: `inner_epochs` of them, on all turns each.

    num_episodes: of all processes, what the loss is divided by.
    """
    micro_batches = in_batches(turns, settings.micro_batch_size, lambda pair: pair[0].size)

    def loss(chosen: Sequence[Credited]) -> tuple[Tensor, Tensor, Tensor]:
        return losses_of(agent, chosen, settings)

    found = [
        engine.update(loss, micro_batches, weight=num_episodes, name=f"step {step + 1}")
        for _ in range(settings.inner_epochs)
    ]
    total, num_clipped, num_tokens = (sum(x) for x in zip(*(s for s, _ in found), strict=True))
    norm = sum(norm or 0.0 for _, norm in found) / settings.inner_epochs
    figures = {"loss": total / num_episodes / settings.inner_epochs, "grad_norm": norm}
    return figures | ({"clipped": num_clipped / num_tokens} if settings.estimator == "ppo" else {})


def losses_of(
    agent: Agent, turns: Sequence[Credited], settings: Settings
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of some turns, summed; how many of their tokens were clipped, and their number."""
    chosen = [turn for turn, _, _ in turns]
    log_probs = agent.log_probs([turn.state for turn in chosen], [turn.action for turn in chosen])
    log_prob_BT, mask_BT = rollouts.padded(rollouts.joint(log_probs))
    places, rests = ([credit[number] for credit in turns] for number in (1, 2))
    advantage_BT = log_prob_BT.new_tensor(rests)[:, None].repeat(1, mask_BT.shape[1])
    advantage_BT[:, 0] = log_prob_BT.new_tensor(places)
    if settings.estimator == "ppo":
        old_BT, _ = rollouts.padded([turn.log_prob_T for turn in chosen])
        ppo = (log_prob_BT, old_BT, advantage_BT, mask_BT, settings.clip)
        loss, num_clipped = objective.clipped(*ppo)
    else:
        loss = objective.policy_gradient(log_prob_BT, advantage_BT, mask_BT)
        num_clipped = mask_BT.new_zeros((), dtype=torch.long)
    if settings.entropy_weight:
        loss = loss + objective.entropy_bonus(log_probs.entropy_B, settings.entropy_weight)
    return loss, num_clipped, mask_BT.sum()
