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
from pathlib import Path
from typing import Any, Final

import torch
from accelerate.utils import gather_object
from torch import Tensor

from policies.editing.actions import Agent
from policies.training import losses
from policies.training.advantages import MovingBaseline, leave_one_out, normalised
from policies.training.collapse import new_warnings
from policies.training.curves import PANELS
from policies.training.reinforce.log import (
    Outcome,
    headline,
    kl_summary,
    outcomes_of,
    sample_rows,
    summary,
)
from policies.training.reinforce.settings import Settings
from policies.training.rollouts import (
    Episode,
    Turn,
    joint,
    padded,
    reward_columns,
    sample_episodes,
)
from policies.training.run import (
    Looks,
    Penalty,
    PolicyRun,
    Result,
    Scorer,
    batches,
    check,
)
from policies.training.samples import OnSamples, print_samples
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.kl import per_token
from rewriting.runtime.seeds import derive_seed
from rewriting.runtime.training.engine import Engine

ESTIMATORS: Final = ("leave_one_out", "moving_average", "ppo")


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

    `output` gets checkpoints, log.jsonl (METRICS of log.py), samples.jsonl and curves.png; the
    accelerator's trackers get the log too. A finished run started again returns at once.
    """
    check_settings(settings, accelerator, exchanges, dev_exchanges)
    walk = {"span_length": settings.span_length, "max_edits": settings.max_edits}

    def measure(rows: Sequence[Exchange], first_row: int) -> dict[str, float]:
        seeds = {"seed": derive_seed(settings.seed, "dev"), "first_row": first_row}
        with accelerator.autocast():
            episodes = sample_episodes(agent, rows, num_samples=1, **seeds, **walk)
        scores = reward.score(update=False, **reward_columns(episodes, run.columns))
        return summary(gather_object(outcomes_of(episodes, scores)))

    run = PolicyRun(
        agent.module, reward, exchanges, settings,
        dev_exchanges=dev_exchanges, measure=measure, kl=kl, output=output, title=title, same=same,
        looks=Looks(headline, new_warnings, PANELS, on_samples), accelerator=accelerator,
        rate_factors=rate_factors, layers=getattr(agent, "layers", ()),
    )  # fmt: skip
    run.parts["baseline"] = baseline = MovingBaseline(settings.baseline_decay)
    with run:
        for step, rows, first_row, clock in run.steps():
            with run.engine.whole():
                with clock("sampling"), accelerator.autocast():
                    seeds = {"seed": settings.seed, "step": step, "first_row": first_row}
                    episodes = sample_episodes(
                        agent, rows, num_samples=settings.num_samples, **seeds, **walk
                    )
                with clock("rewards"):
                    scores = reward.score(update=True, **reward_columns(episodes, run.columns))
                with clock("reference"), accelerator.autocast():
                    kl_E = None
                    if kl is not None:
                        kl_E = kl_figures(agent, episodes, kl, settings.micro_batch_size)
            local_outcomes = outcomes_of(episodes, scores, kl_E)
            all_outcomes: list[Outcome] = gather_object(local_outcomes)

            rewards_NG = penalised_rewards(all_outcomes).view(-1, settings.num_samples)
            advantages_NG = advantages_of(rewards_NG, baseline, settings)
            first = first_row * settings.num_samples
            advantages = advantages_NG.flatten()[first : first + len(episodes)].tolist()
            with clock("update"):
                pairs = zip(episodes, advantages, strict=True)
                turns = [(turn, a) for episode, a in pairs for turn in episode.turns]
                figures = improve(run.engine, agent, turns, len(all_outcomes), settings, step)

            row = summary(all_outcomes, settings.num_samples)
            if kl is not None:
                row |= kl_summary(all_outcomes) | {f"kl/{n}": v for n, v in kl.state_dict().items()}
                kl.update(row["kl_k1"], len(all_outcomes))
            row |= {"advantage": float(advantages_NG.abs().mean())} | figures
            shown = sample_rows(step + 1, episodes, local_outcomes, settings.num_samples)
            run.report(step, row, clock, shown)
    return run.finish()


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
    if estimator != "ppo" and settings.inner_epochs > 1:
        raise UserError(
            f"{estimator} may use its samples once; inner_epochs {settings.inner_epochs} needs ppo."
        )


@torch.no_grad()
def kl_figures(
    agent: Agent, episodes: Sequence[Episode], penalty: Penalty, batch_size: int
) -> list[dict[str, float]]:
    """k1, k3 and the penalty of each episode, summed over its positions and tokens."""
    turns = [turn for episode in episodes for turn in episode.turns]
    found: dict[int, list[float]] = {}
    for batch in batches([turn.size for turn in turns], batch_size):
        chosen = [turns[number] for number in batch]
        reference = agent.log_probs(
            [turn.state for turn in chosen], [turn.action for turn in chosen], role="reference"
        )
        ref_BT, mask_BT = padded(joint(reference))
        log_prob_BT, _ = padded([turn.log_prob_T for turn in chosen])
        rows = (log_prob_BT, ref_BT, mask_BT)
        tables = (per_token(*rows, "k1"), per_token(*rows, "k3"), penalty(*rows))
        figures_B3 = torch.stack([table_BT.sum(dim=-1) for table_BT in tables], dim=-1)
        found |= dict(zip(batch, figures_B3.tolist(), strict=True))
    left = iter(found[number] for number in range(len(turns)))
    sums = [[sum(x) for x in zip(*(next(left) for _ in e.turns), strict=True)] for e in episodes]
    return [dict(zip(("k1", "k3", "penalty"), values, strict=True)) for values in sums]


def penalised_rewards(outcomes: Sequence[Outcome]) -> Tensor:
    """[E]: the reward of each episode after the KL penalty; NaN where it has none."""
    if not all(math.isfinite(outcome.penalty) for outcome in outcomes):
        raise UserError(
            "the KL to the reference is infinite: the reference could not have said what the "
            "policy said. Train with top_p 1."
        )
    rewards = [math.nan if o.reward is None else o.reward - o.penalty for o in outcomes]
    return torch.tensor(rewards, dtype=torch.float64)


def advantages_of(rewards_NG: Tensor, baseline: MovingBaseline, settings: Settings) -> Tensor:
    """[N, G]: how much better each sample did than was to be expected."""
    if settings.estimator == "moving_average" or settings.num_samples == 1:
        advantages_NG = baseline.advantages(rewards_NG)
    else:
        advantages_NG = leave_one_out(rewards_NG)
    return normalised(advantages_NG) if settings.normalise else advantages_NG


def improve(
    engine: Engine,
    agent: Agent,
    turns: Sequence[tuple[Turn, float]],
    num_episodes: int,
    settings: Settings,
    step: int,
) -> dict[str, float]:
    """Optimizer steps on turns with their advantages: `inner_epochs` of them, on all turns each.

    num_episodes: of all processes, what the loss is divided by.
    """
    sizes = [turn.size for turn, _ in turns]
    cut = batches(sizes, settings.micro_batch_size)
    micro_batches = [[turns[number] for number in batch] for batch in cut]

    def loss(chosen: Sequence[tuple[Turn, float]]) -> tuple[Tensor, Tensor, Tensor]:
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
    agent: Agent, turns: Sequence[tuple[Turn, float]], settings: Settings
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of some turns, summed; how many of their tokens were clipped, and their number."""
    chosen = [turn for turn, _ in turns]
    log_probs = agent.log_probs([turn.state for turn in chosen], [turn.action for turn in chosen])
    log_prob_BT, mask_BT = padded(joint(log_probs))
    advantage_B = log_prob_BT.new_tensor([advantage for _, advantage in turns])
    if settings.estimator == "ppo":
        old_BT, _ = padded([turn.log_prob_T for turn in chosen])
        ppo = (log_prob_BT, old_BT, advantage_B, mask_BT, settings.clip)
        loss, num_clipped = losses.clipped(*ppo), losses.num_clipped(*ppo)
    else:
        loss = losses.policy_gradient(log_prob_BT, advantage_B, mask_BT)
        num_clipped = mask_BT.new_zeros((), dtype=torch.long)
    if settings.entropy_weight:
        loss = loss + losses.entropy_bonus(log_probs.entropy_B, settings.entropy_weight)
    return loss, num_clipped, mask_BT.sum()
