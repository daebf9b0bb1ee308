"""PPO for generators (arXiv 1707.06347; EmpRL, arXiv 2408.02976).

A step: sample a response to each exchange, score them, ask the reference how likely each token was,
estimate how much better every token did than the value head expected, make the better ones
likelier in a few epochs over the same responses.

What is read of a prompt that no adapter changes (of an encoder-decoder the keys and values of the
cross-attention) is computed once and serves sampling, reference, value and all epochs. The
log-probabilities and values before the update are those of sampling itself, so there is no second
pass over the policy for them.

Every inner epoch cuts the batch anew into minibatches, each good for one optimizer step. A
minibatch takes one row out of every block of the batch: however many processes hold a part of the
batch, each has its share of every minibatch, and all minibatches are the same. The outcomes of all
processes are handed round, and advantages are computed of the whole batch by each.

Left out: an entropy bonus, which makes a language model ramble; several samples of one exchange,
which the value head stands in for.

Legend: B responses of the whole batch, T tokens of the longest, t of the longest in a micro-batch.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object
from torch import Tensor

from policies.generating.generator import Generator
from policies.training import objective
from policies.training.contracts import Penalty, Result, Scorer
from policies.training.display import PPO, Display, OnSamples, sample_row
from policies.training.figures import dev_figures
from policies.training.ppo import rollouts
from policies.training.ppo.rollouts import Outcome, Rollout, Targets
from policies.training.ppo.settings import Settings
from policies.training.settings import check
from rewriting.data.columns import column_names
from rewriting.errors import UserError
from rewriting.exchange import Exchange, Rewrite
from rewriting.runtime.language_models.kl import per_token
from rewriting.runtime.processes import own_share
from rewriting.runtime.seeds import derive_seed
from rewriting.runtime.training.engine import Engine, in_batches
from rewriting.runtime.training.run import Run
from rewriting.show import print_responses

SUMS = ("policy_loss", "value_loss", "update_kl", "clipped")


def train(
    generator: Generator,
    reward: Scorer,
    exchanges: Sequence[Exchange],
    settings: Settings,
    *,
    output: Path,
    accelerator: Any,
    kl: Penalty | None = None,
    dev_exchanges: Sequence[Exchange] = (),
    on_samples: OnSamples | None = print_responses,
    rate_factors: Mapping[str, float] | None = None,
    same: Mapping[str, Any] | None = None,
    title: str = "ppo",
) -> Result:
    """Train the generator to earn more reward; it is left with the last weights, or the best.

    kl: the KL penalty per token against the role "reference"; what the generator is now becomes the
    reference, unless it has one. None: no KL at all. dev_exchanges: measured before the first step
    and every eval_every steps. on_samples(title, rows): gets what goes to samples.jsonl.
    rate_factors: what the learning rate is multiplied with for parameters whose name holds a word.
    same: plain values that a resumed run must have too.

    `output` gets checkpoints, log.jsonl (docs/ppo.md), samples.jsonl and curves.png; the
    accelerator's trackers get the log too. A finished run started again returns at once.
    """
    check_settings(settings, accelerator, exchanges, dev_exchanges)
    if kl is not None and "reference" not in generator.roles:
        generator.freeze_reference()

    columns = column_names([*exchanges, *dev_exchanges])
    dev = partial(measure, generator, reward, dev_exchanges, columns, settings, accelerator)
    run = Run(
        generator.module.eval(), exchanges, settings, output=output, accelerator=accelerator,
        title=title, measure=dev if dev_exchanges else None, measure_start=True, same=same,
        rate_factors=rate_factors, layers=generator.layers,
    )  # fmt: skip
    frozen = generator.adapters.parameters("reference") if "reference" in generator.roles else []
    named = {str(number): parameter for number, parameter in enumerate(frozen)}
    run.add_parts(reward=reward, kl=kl, reference=run.engine.frozen(named))
    display = Display(run, settings, PPO, on_samples)
    with run:
        for step, rows in run.steps():
            first_row = accelerator.process_index * len(rows)
            with run.engine.whole():
                with run.timed("sampling"), accelerator.autocast():
                    seeds = {"seed": settings.seed, "step": step, "first_row": first_row}
                    rollout = rollouts.sample_responses(generator, rows, **seeds)
                with run.timed("rewards"):
                    scores = reward.score(update=True, **rollouts.reward_columns(rollout, columns))
                with run.timed("reference"), accelerator.autocast():
                    references = None
                    if kl is not None:
                        references = rollouts.reference_log_probs(
                            generator, rollout, generator.batch_size
                        )
            local_outcomes = rollouts.outcomes_of(rollout, scores, references)
            all_outcomes: list[Outcome] = gather_object(local_outcomes)

            targets, figures = rollouts.targets_of(
                all_outcomes, kl,
                gamma=settings.gamma, lam=settings.lam, whiten=settings.whiten_advantages,
                end_penalty=settings.end_penalty,
            )  # fmt: skip
            with run.timed("update"):
                figures |= improve(
                    run.engine, generator, rollout, targets, first_row, settings, step
                )

            row = rollouts.summary(all_outcomes) | figures
            if kl is not None:
                row |= {f"kl/{name}": value for name, value in kl.state_dict().items()}
                kl.update(row["kl_k1"], len(all_outcomes))
            run.record(step, row)
            display.show(sample_rows(step, rollout, local_outcomes))
    best = run.finish()
    return Result(run.log.rows, best.step if best else settings.steps)


def check_settings(
    settings: Settings, accelerator: Any, exchanges: Sequence[Any], dev: Sequence[Any]
) -> None:
    """Say what cannot work before any model is asked."""
    check(settings, accelerator, exchanges, dev)
    if settings.minibatch_size > settings.batch_size:
        raise UserError(
            f"a minibatch of {settings.minibatch_size} responses does not fit into a batch of "
            f"{settings.batch_size}."
        )


def measure(
    generator: Generator,
    reward: Scorer,
    dev_exchanges: Sequence[Exchange],
    columns: Sequence[str],
    settings: Settings,
    accelerator: Any,
) -> tuple[dict[str, float], float | None]:
    """The figures of a response to each exchange, drawn with the same seeds every time."""
    own, first_row = own_share(dev_exchanges)
    outcomes: list[Outcome] = []
    for start in range(0, len(own), 4 * generator.batch_size):
        rows = own[start : start + 4 * generator.batch_size]
        seeds = {"seed": derive_seed(settings.seed, "dev"), "first_row": first_row + start}
        with accelerator.autocast():
            rollout = rollouts.sample_responses(generator, rows, **seeds)
        scores = reward.score(update=False, **rollouts.reward_columns(rollout, columns))
        outcomes += rollouts.outcomes_of(rollout, scores)
    return dev_figures(rollouts.summary(gather_object(outcomes)), settings.keep_best)


def sample_rows(step: int, rollout: Rollout, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Responses as lines of samples.jsonl."""
    return [
        sample_row(
            step, Rewrite(exchange, outcome.response), outcome, history=list(exchange.history)
        )
        for exchange, outcome in zip(rollout.exchanges, outcomes, strict=True)
    ]


def minibatches(num_rows: int, minibatch_size: int, *, seed: int) -> list[list[int]]:
    """The rows of a batch in minibatches, in an order that follows from the seed."""
    count = -(-num_rows // minibatch_size)
    chooser = random.Random(seed)
    found: list[list[int]] = [[] for _ in range(count)]
    for start in range(0, num_rows, count):
        block = list(range(start, min(start + count, num_rows)))
        for row, target in zip(block, chooser.sample(range(count), len(block)), strict=True):
            found[target].append(row)
    return [rows for rows in found if rows]


def improve(
    engine: Engine,
    generator: Generator,
    rollout: Rollout,
    targets: Targets,
    first_row: int,
    settings: Settings,
    step: int,
) -> dict[str, float]:
    """The optimizer steps of a step on the rows of this process, which begin at `first_row`.

    Once a minibatch finds the policy further than 1.5 times max_update_kl from the one that sampled
    (mean over tokens), it is not stepped on, and no other is. (DeepSpeed has stepped by then.)
    """
    own = range(first_row, first_row + len(rollout.responses))
    seed = derive_seed(settings.seed, "update", step)
    total, num_tokens, norms = torch.zeros(len(SUMS), dtype=torch.float64), 0, []

    def loss(rows: Sequence[int]) -> tuple[Tensor, ...]:
        return losses_of(generator, rollout, targets, rows, first_row, settings)

    def length(row: int) -> int:
        return len(rollout.sampled.tokens[row])

    for rows in (
        rows
        for epoch in range(settings.inner_epochs)
        for rows in minibatches(
            len(targets.mask_BT), settings.minibatch_size, seed=derive_seed(seed, "inner", epoch)
        )
    ):
        tokens = int(targets.mask_BT[rows].sum())
        if not tokens:
            continue

        def is_too_far(sums: list[float], tokens: int = tokens) -> bool:
            return 0 < 1.5 * settings.max_update_kl < sums[1 + SUMS.index("update_kl")] / tokens

        local = [row - first_row for row in rows if row in own]
        cut = in_batches(local, settings.micro_batch_size, length)
        sums, norm = engine.update(
            loss, cut, weight=tokens, idle=[0], stop=is_too_far, name=f"step {step + 1}"
        )
        total, num_tokens = total + torch.tensor(sums[1:], dtype=torch.float64), num_tokens + tokens
        norms += [] if norm is None else [norm]
        if is_too_far(sums):
            break
    figures = dict(zip(SUMS, (total / max(num_tokens, 1)).tolist(), strict=True))
    norm = sum(norms) / len(norms) if norms else 0.0
    return figures | {"updates": float(len(norms)), "grad_norm": norm}


def losses_of(
    generator: Generator,
    rollout: Rollout,
    targets: Targets,
    rows: Sequence[int],
    first_row: int,
    settings: Settings,
) -> tuple[Tensor, ...]:
    """The loss of some rows of this process, and the four SUMS."""
    found = generator.log_probs(
        rollout.encoded.select(rows), [rollout.sampled.tokens[row] for row in rows], values=True
    )
    assert found.value_BT is not None
    width = found.mask_BT.shape[1]
    places = [first_row + row for row in rows]

    def part(tensor_BT: Tensor) -> Tensor:
        return tensor_BT[places, :width].to(found.mask_BT.device)

    mask_Bt = part(targets.mask_BT)
    ratio = (found.log_prob_BT, part(targets.log_prob_BT), part(targets.advantage_BT), mask_Bt)
    policy_loss, num_clipped = objective.clipped(*ratio, settings.clip)
    value_clip = settings.value_clip or None
    value_loss = objective.value_loss(
        found.value_BT, part(targets.value_BT), part(targets.return_BT), mask_Bt, value_clip
    )
    with torch.no_grad():
        # KL(π_old ‖ π): the tokens are π_old's.
        away_Bt = per_token(ratio[1], found.log_prob_BT, mask_Bt, "k3")
        # With top_p below 1 the policy may have come to rule out what it said.
        away = away_Bt.masked_fill(away_Bt.isinf(), 0.0).sum()
        figures = (policy_loss.detach(), value_loss.detach(), away)
    return (policy_loss + settings.value_weight * value_loss, *figures, num_clipped)
