"""The optimizer steps of PPO on one batch of responses.

Every inner epoch cuts the batch anew into minibatches, each good for one optimizer step. A
minibatch takes one row out of every block of the batch: however many processes hold a part of the
batch, each has its share of every minibatch, and all minibatches are the same.

Legend: B responses of the whole batch, T tokens of the longest, t of the longest in a micro-batch.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from policies.generating.generator import Generator
from policies.training.losses import k3
from policies.training.policy_update import batches
from policies.training.ppo import mathematics
from policies.training.ppo.rollouts import Rollout, Targets
from rewriting.errors import UserError
from rewriting.runtime.seeds import derive_seed
from rewriting.runtime.training.supervised import Trainable

SUMS = ("policy_loss", "value_loss", "update_kl", "clipped")


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
    generator: Generator,
    weights: Trainable,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    targets: Targets,
    accelerator: Any,
    *,
    first_row: int,
    seed: int,
    inner_epochs: int,
    minibatch_size: int,
    micro_batch_size: int,
    clip: float,
    value_clip: float | None,
    value_weight: float,
    target_kl: float | None,
    max_grad_norm: float,
) -> dict[str, float]:
    """Optimizer steps on the rows of this process, which begin at `first_row` of the batch.

    target_kl: once a minibatch finds the policy further than 1.5 times this from the one that
    sampled (mean over tokens), it is not stepped on, and no other is. Returns figures of the steps.
    """
    num_rows, mine = len(targets.mask_BT), range(first_row, first_row + len(rollout.responses))
    total, num_tokens, norms = torch.zeros(len(SUMS), dtype=torch.float64), 0, []
    stopped = False
    for epoch in range(inner_epochs):
        for rows in minibatches(num_rows, minibatch_size, seed=derive_seed(seed, "inner", epoch)):
            tokens = int(targets.mask_BT[rows].sum())
            if not tokens or stopped:
                continue
            sums = torch.zeros(len(SUMS), dtype=torch.float64)
            local = [row - first_row for row in rows if row in mine]
            lengths = [len(rollout.sampled.tokens[row]) for row in local]
            for micro in batches(lengths, micro_batch_size):
                chosen = [local[number] for number in micro]
                with accelerator.autocast():
                    loss, parts = losses_of(
                        generator, rollout, targets, chosen, first_row, clip, value_clip
                    )
                policy_loss, value_loss = loss
                # Not accelerator.backward: it divides by the launcher's accumulation steps.
                (policy_loss + value_weight * value_loss).backward()
                sums += parts
            if accelerator.num_processes > 1:
                sums = accelerator.reduce(sums.to(accelerator.device), reduction="sum").cpu()
            total, num_tokens = total + sums, num_tokens + tokens
            update_kl = float(sums[SUMS.index("update_kl")]) / tokens
            if target_kl is not None and update_kl > 1.5 * target_kl:
                optimizer.zero_grad()
                stopped = True
                continue
            norms.append(weights.average_gradients(accelerator, tokens, max_grad_norm))
            if not math.isfinite(norms[-1]):
                raise UserError(
                    f"the gradient is {norms[-1]}: the policy has diverged. Train in another "
                    "folder with a lower learning_rate, or a lower target_kl."
                )
            optimizer.step()
            optimizer.zero_grad()
    figures = dict(zip(SUMS, (total / max(num_tokens, 1)).tolist(), strict=True))
    return figures | {
        "updates": float(len(norms)),
        "grad_norm": sum(norms) / len(norms) if norms else 0.0,
    }


def losses_of(
    generator: Generator,
    rollout: Rollout,
    targets: Targets,
    rows: Sequence[int],
    first_row: int,
    clip: float,
    value_clip: float | None,
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Policy and value loss of some rows of this process, and the four SUMS as numbers."""
    found = generator.log_probs(
        rollout.encoded.select(rows),
        [rollout.sampled.tokens[row] for row in rows],
        values=True,
    )
    assert found.value_BT is not None
    width = found.mask_BT.shape[1]
    places = [first_row + row for row in rows]

    def part(tensor_BT: Tensor) -> Tensor:
        return tensor_BT[places, :width].to(found.mask_BT.device)

    mask_Bt = part(targets.mask_BT)
    ratio = (found.log_prob_BT, part(targets.log_prob_BT), part(targets.advantage_BT), mask_Bt)
    policy_loss = mathematics.policy_loss(*ratio, clip)
    value_loss = mathematics.value_loss(
        found.value_BT, part(targets.value_BT), part(targets.return_BT), mask_Bt, value_clip
    )
    with torch.no_grad():
        # KL(π_old ‖ π): the tokens are π_old's.
        away_Bt = k3(ratio[1], found.log_prob_BT, mask_Bt).masked_fill(~mask_Bt, 0.0)
        # With top_p below 1 the policy may have come to rule out what it said.
        away = away_Bt.masked_fill(away_Bt.isinf(), 0.0).sum()
        clipped = mathematics.num_clipped(*ratio, clip)
        figures = [policy_loss.detach(), value_loss.detach(), away, clipped]
        parts = torch.stack([figure.double() for figure in figures]).cpu()
    return (policy_loss, value_loss), parts
