"""What happens to the tokens of a step: their KL to the reference, and the gradient.

Legend: B actions, T tokens of an action with its position as the first, E episodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from policies.editing.actions import Agent
from policies.training import losses
from policies.training.rollouts import Episode, Turn, joint, padded
from rewriting.runtime.training.supervised import Trainable


class Penalty(Protocol):
    """The price of leaving the reference, [B, T] per token: a `KLPenalty`.

    `update` is told the mean KL of so many new episodes, for a price that adapts.
    """

    def __call__(self, log_prob_BT: Tensor, ref_log_prob_BT: Tensor, mask_BT: Tensor) -> Tensor: ...
    def update(self, kl: float, num_responses: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


@torch.no_grad()
def kl_figures(
    agent: Agent, episodes: Sequence[Episode], penalty: Penalty, batch_size: int
) -> list[dict[str, float]]:
    """k1, k3 and the penalty of each episode, summed over its positions and tokens."""
    turns = [turn for episode in episodes for turn in episode.turns]
    found: dict[int, tuple[float, float, float]] = {}
    for batch in batches([turn.size for turn in turns], batch_size):
        chosen = [turns[number] for number in batch]
        reference = agent.log_probs(
            [turn.state for turn in chosen], [turn.action for turn in chosen], role="reference"
        )
        ref_BT, mask_BT = padded(joint(reference))
        log_prob_BT, _ = padded([turn.log_prob_T for turn in chosen])
        k1_B = (log_prob_BT - ref_BT).sum(dim=-1)
        k3_B = losses.k3(log_prob_BT, ref_BT, mask_BT).sum(dim=-1)
        penalty_B = penalty(log_prob_BT, ref_BT, mask_BT).sum(dim=-1)
        rows = zip(k1_B.tolist(), k3_B.tolist(), penalty_B.tolist(), strict=True)
        found |= dict(zip(batch, rows, strict=True))
    left = iter(found[number] for number in range(len(turns)))
    sums = [[sum(x) for x in zip(*(next(left) for _ in e.turns), strict=True)] for e in episodes]
    return [dict(zip(("k1", "k3", "penalty"), values, strict=True)) for values in sums]


def improve(
    agent: Agent,
    weights: Trainable,
    optimizer: torch.optim.Optimizer,
    turns: Sequence[tuple[Turn, float]],
    accelerator: Any,
    *,
    num_episodes: int,
    inner_epochs: int,
    clip: float | None,
    entropy_weight: float,
    micro_batch_size: int,
    max_grad_norm: float,
) -> dict[str, float]:
    """Optimizer steps on turns with their advantages: `inner_epochs` of them, on all turns each.

    num_episodes: of all processes, what the loss is divided by. clip: of PPO; None is REINFORCE.
    """
    total, num_clipped, num_tokens, norms = 0.0, 0, 0, []
    for _ in range(inner_epochs):
        for batch in batches([turn.size for turn, _ in turns], micro_batch_size):
            chosen = [turns[number][0] for number in batch]
            with accelerator.autocast():
                log_probs = agent.log_probs(
                    [turn.state for turn in chosen], [turn.action for turn in chosen]
                )
            log_prob_BT, mask_BT = padded(joint(log_probs))
            advantage_B = log_prob_BT.new_tensor([turns[number][1] for number in batch])
            if clip is None:
                loss = losses.policy_gradient(log_prob_BT, advantage_B, mask_BT)
            else:
                old_BT, _ = padded([turn.log_prob_T for turn in chosen])
                ppo = (log_prob_BT, old_BT, advantage_B, mask_BT, clip)
                loss = losses.clipped(*ppo)
                num_clipped += losses.num_clipped(*ppo)
            if entropy_weight:
                loss = loss + losses.entropy_bonus(log_probs.entropy_B, entropy_weight)
            # Not accelerator.backward: it divides by the launcher's accumulation steps.
            loss.backward()
            total, num_tokens = total + loss.item(), num_tokens + int(mask_BT.sum())
        norms.append(weights.average_gradients(accelerator, num_episodes, max_grad_norm))
        optimizer.step()
        optimizer.zero_grad()
    sums = torch.tensor([total, num_clipped, num_tokens], dtype=torch.float64)
    if accelerator.num_processes > 1:
        sums = accelerator.reduce(sums.to(accelerator.device), reduction="sum").cpu()
    total, clipped, tokens = sums.tolist()
    figures = {"loss": total / num_episodes / inner_epochs, "grad_norm": sum(norms) / len(norms)}
    return figures if clip is None else figures | {"clipped": clipped / tokens}


def batches(sizes: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """The numbers of rows in batches of similar size, so that little is padded.

    Rows of the same size stay in their order: samples of one exchange, whose prompt an agent may
    then read once, stay together.
    """
    order = sorted(range(len(sizes)), key=lambda number: sizes[number])
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
