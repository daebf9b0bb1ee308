"""PPO for generators (arXiv 1707.06347; EmpRL, arXiv 2408.02976), on one process or many.

A step: sample a response to each exchange, score them, ask the reference how likely each token was,
estimate how much better every token did than the value head expected, make the better ones
likelier in a few epochs over the same responses.

What is read of a prompt that no adapter changes (of an encoder-decoder the keys and values of the
cross-attention) is computed once and serves sampling, reference, value and all epochs. The
log-probabilities and values before the update are those of sampling itself, so there is no second
pass over the policy for them.

The gradients of a minibatch are sums divided once by its tokens: how it is cut into micro-batches
or shared by processes changes no loss. All figures that differ between processes are handed round,
and advantages are computed of the whole batch by each.

Left out: an entropy bonus, which makes a language model ramble; several samples of one exchange,
which the value head stands in for; float16, whose gradients would need scaling.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import gather_object

from policies.generating.adapters import RoleState
from policies.generating.generator import Generator
from policies.training.policy_update import Penalty
from policies.training.ppo.log import (
    PANELS,
    headline,
    new_warnings,
    print_responses,
    sample_rows,
    summary,
)
from policies.training.ppo.rollouts import (
    Outcome,
    outcomes_of,
    reference_log_probs,
    reward_columns,
    sample_responses,
    targets_of,
)
from policies.training.ppo.update import improve
from policies.training.reinforce.curves import plot_curves
from policies.training.reinforce.log import Clock
from policies.training.reinforce.loop import Result, Scorer
from policies.training.reinforce.samples import OnSamples, SampleFile
from policies.training.rollouts import column_names
from rewriting.errors import UserError
from rewriting.exchange import Exchange
from rewriting.runtime.files import disk_errors
from rewriting.runtime.progress import progress_bar
from rewriting.runtime.seeds import derive_seed, rows_of_step
from rewriting.runtime.training.checkpoints import Checkpoints, Part
from rewriting.runtime.training.log import LossLog
from rewriting.runtime.training.supervised import Best, Trainable, check_replicas, rate_factor

logger = logging.getLogger(__name__)


def train(
    generator: Generator,
    reward: Scorer,
    exchanges: Sequence[Exchange],
    *,
    output: Path,
    accelerator: Any,
    steps: int,
    batch_size: int = 32,
    minibatch_size: int = 8,
    micro_batch_size: int = 8,
    inner_epochs: int = 4,
    clip: float = 0.2,
    value_clip: float | None = 0.2,
    value_weight: float = 0.1,
    gamma: float = 1.0,
    lam: float = 0.95,
    kl: Penalty | None = None,
    target_kl: float | None = None,
    whiten_advantages: bool = True,
    end_penalty: float = 0.0,
    learning_rate: float = 1e-5,
    weight_decay: float = 0.0,
    warmup: float = 0.05,
    rate_factors: Mapping[str, float] | None = None,
    max_grad_norm: float = 1.0,
    dev_exchanges: Sequence[Exchange] = (),
    eval_every: int = 50,
    keep_best: bool = False,
    save_every: int = 50,
    show_every: int = 50,
    num_shown: int = 3,
    on_samples: OnSamples | None = print_responses,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    title: str = "ppo",
) -> Result:
    """Train the generator to earn more reward; it is left with the last weights, or the best.

    batch_size: responses of a step, all processes together. minibatch_size: of them, those of one
    optimizer step. micro_batch_size: responses in memory at once; it changes no result. clip,
    value_clip: how far a token's probability, and its value, may move in a step and still be
    pulled on; value_clip None: as far as it likes. value_weight: of the value loss, whose gradient
    reaches the adapter too. gamma, lam: of GAE. kl: the price of leaving the role "reference", per
    token; what the generator is now becomes the reference, unless it has one. None: no KL at all.
    target_kl: mean KL per token from the policy that sampled, at 1.5 times which the updates of a
    step stop. end_penalty: subtracted from the reward of a response that was cut off. warmup: share
    of the steps in which the learning rate rises; afterwards it falls to 0 on a line. rate_factors:
    what it is multiplied with for parameters whose name holds a word. dev_exchanges: measured
    before the first step and every eval_every steps; with keep_best the weights with the best dev
    reward are kept. show_every: steps between two looks at num_shown responses, which go to
    samples.jsonl and to on_samples(title, rows). settings: plain values that a resumed run must
    have too.

    `output` gets checkpoints, log.jsonl (METRICS of log.py), samples.jsonl and curves.png; the
    accelerator's trackers get the log too. A finished run started again returns at once.
    """
    if not exchanges:
        raise UserError("there are no exchanges to train on. Check the data and its filters.")
    check(
        accelerator,
        batch_size,
        minibatch_size,
        num_dev=len(dev_exchanges) if keep_best else None,
        steps=steps,
        micro_batch_size=micro_batch_size,
        inner_epochs=inner_epochs,
        eval_every=eval_every,
        save_every=save_every,
        show_every=show_every,
    )
    if kl is not None and "reference" not in generator.roles:
        generator.freeze_reference()
    weights = Trainable(generator.module.eval())
    groups = weights.groups(rate_factors or {})
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, weight_decay=weight_decay)
    log, best = LossLog(output, accelerator.is_main_process), Best(weights)
    samples = SampleFile(output, accelerator.is_main_process)
    parts: dict[str, Part] = {"module": weights, "optimizer": optimizer, "log": log}
    frozen = generator.adapters.parameters("reference") if "reference" in generator.roles else []
    parts |= {"samples": samples, "best": best, "reference": RoleState(frozen)}
    stateful = {"reward": reward, "kl": kl}
    parts |= {n: part for n, part in stateful.items() if hasattr(part, "state_dict")}  # type: ignore[misc]
    columns = column_names([*exchanges, *dev_exchanges])
    share = {"process": accelerator.process_index, "num_processes": accelerator.num_processes}

    def measure_dev(step: int) -> dict[str, float]:
        figures = dev_figures(generator, reward, dev_exchanges, columns, accelerator, seed)
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
                first_row = accelerator.process_index * len(numbers)
                chosen = [exchanges[number] for number in numbers]
                rollout = sample_responses(
                    generator, chosen, seed=seed, step=step, first_row=first_row
                )
            with clock("rewards"):
                scores = reward.score(update=True, **reward_columns(rollout, columns))
            with clock("reference"), accelerator.autocast():
                references = None
                if kl is not None:
                    references = reference_log_probs(generator, rollout, generator.batch_size)
            mine = outcomes_of(rollout, scores, references)
            everyone: list[Outcome] = gather_object(mine)

            targets, figures = targets_of(
                everyone,
                kl,
                gamma=gamma,
                lam=lam,
                whiten=whiten_advantages,
                end_penalty=end_penalty,
            )
            with clock("update"):
                rate = learning_rate * rate_factor(step, steps, warmup)
                for group in optimizer.param_groups:
                    group["lr"] = rate * group["factor"]
                progress = improve(
                    generator,
                    weights,
                    optimizer,
                    rollout,
                    targets,
                    accelerator,
                    first_row=first_row,
                    seed=derive_seed(seed, "update", step),
                    inner_epochs=inner_epochs,
                    minibatch_size=minibatch_size,
                    micro_batch_size=micro_batch_size,
                    clip=clip,
                    value_clip=value_clip,
                    value_weight=value_weight,
                    target_kl=target_kl,
                    max_grad_norm=max_grad_norm,
                )

            done = step + 1
            row: dict[str, float] = {"step": done} | summary(everyone) | figures
            if kl is not None:
                row |= {f"kl/{name}": value for name, value in kl.state_dict().items()}
                kl.update(row["kl_k1"], len(everyone))
            row |= progress | {"rate": rate} | clock.seconds
            if dev_exchanges and (done % eval_every == 0 or done == steps):
                row |= measure_dev(done)
            _write(log, row, accelerator)
            if accelerator.is_main_process:
                for warning in new_warnings(log.rows):
                    logger.warning("step %d: %s", done, warning)
                if done % show_every == 0 or done == steps:
                    shown_rows = sample_rows(done, rollout, mine)[:num_shown]
                    samples.add(shown_rows)
                    if on_samples is not None:
                        on_samples(headline(row), shown_rows)
                    with disk_errors(output):
                        plot_curves(log.rows, output / "curves.png", title, PANELS)
            advance(done - shown)
            shown = done
        # A finished run that is started again has no step left: it restores and comes here.
    kept = best.load().step if best.state["weights"] else steps
    return Result(log.rows, kept)


def dev_figures(
    generator: Generator,
    reward: Scorer,
    exchanges: Sequence[Exchange],
    columns: Sequence[str],
    accelerator: Any,
    seed: int,
) -> dict[str, float]:
    """The figures of a response to each exchange, drawn with the same seeds every time."""
    size = -(-len(exchanges) // accelerator.num_processes)
    first = accelerator.process_index * size
    mine: list[Outcome] = []
    for start in range(first, min(first + size, len(exchanges)), 4 * generator.batch_size):
        end = min(start + 4 * generator.batch_size, first + size)
        with accelerator.autocast():
            rollout = sample_responses(
                generator, exchanges[start:end], seed=derive_seed(seed, "dev"), first_row=start
            )
        scores = reward.score(update=False, **reward_columns(rollout, columns))
        mine += outcomes_of(rollout, scores)
    return summary(gather_object(mine))


def _write(log: LossLog, row: dict[str, float], accelerator: Any) -> None:
    log.add(row)
    accelerator.log(row, step=int(row["step"]))


def check(
    accelerator: Any,
    batch_size: int,
    minibatch_size: int,
    *,
    num_dev: int | None = None,
    **counts: int,
) -> None:
    """Say what cannot work before any model is asked.

    num_dev: dev exchanges to keep the best weights by; None: they are not asked for.
    """
    check_replicas(accelerator)
    counts |= {"batch_size": batch_size, "minibatch_size": minibatch_size}
    for name, count in counts.items():
        if count < 1:
            raise UserError(f"{name} must be 1 or more, not {count}.")
    if num_dev == 0:
        raise UserError("keep_best compares dev rewards: give dev exchanges, or turn it off.")
    if minibatch_size > batch_size:
        raise UserError(
            f"a minibatch of {minibatch_size} responses does not fit into a batch of {batch_size}."
        )
    if batch_size % accelerator.num_processes:
        raise UserError(
            f"a batch of {batch_size} exchanges cannot be shared by {accelerator.num_processes} "
            "processes. Make batch_size a multiple of them."
        )
    if accelerator.mixed_precision == "fp16":
        raise UserError("mixed precision fp16 is not supported here; use bf16 or no.")
