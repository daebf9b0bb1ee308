"""One supervised training loop for adapters and small heads, on one process or many.

The caller passes a module, a loss function and rows; the loop knows nothing of what is learnt.
Gradients are of sums over the global batch, divided once by its weight: how the batch is cut into
micro-batches or shared by processes changes no loss. Randomness and rows follow from (seed, step,
process), so a run that stops at any step goes on bit for bit.

Left out: wrappers for distributed modules. What is trained here is a few megabytes, so gradients
are summed over processes in one go, and `loss` may call any part of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from rewriting.errors import UserError
from rewriting.runtime.progress import progress_bar
from rewriting.runtime.seeds import derive_seed, rows_of_step
from rewriting.runtime.training.checkpoints import Checkpoints, Part
from rewriting.runtime.training.log import LossLog, plot

T = TypeVar("T")
Loss = Callable[[Sequence[T]], tuple[Tensor, float]]
"""Rows → the sum of their losses, and what it is to be divided by (rows, tokens, weights)."""


@dataclass(frozen=True, slots=True)
class Result:
    """The best dev loss, and the number of steps after which it was reached."""

    dev_loss: float
    step: int


def train(
    module: nn.Module,
    loss: Loss[T],
    train_rows: Sequence[T],
    dev_rows: Sequence[T],
    *,
    output: Path,
    accelerator: Any,
    steps: int,
    batch_size: int,
    micro_batch_size: int,
    learning_rate: float,
    weight_decay: float = 0.0,
    warmup: float = 0.1,
    max_grad_norm: float = 1.0,
    eval_every: int = 100,
    save_every: int = 100,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    size: Callable[[T], int] | None = None,
    rate_factors: Mapping[str, float] | None = None,
    average: float = 0.0,
    dev_score: Callable[[], float] | None = None,
    title: str = "training",
) -> Result:
    """Train the parameters of `module` that require gradients; leave it with the best ones.

    batch_size: of all processes together. warmup: the share of the steps in which the learning
    rate rises; afterwards it falls to 0 on a line. size: the length of a row; micro-batches are
    then cut from rows of similar length. rate_factors: what the learning rate is multiplied with
    for parameters whose name holds a word. average: the decay of the moving average of the weights
    that is measured and kept; 0 is the weights themselves. dev_score: called on the module in
    evaluation mode, what to keep the best by, lower is better; by default the loss over `dev_rows`.
    `output` gets checkpoints, log.jsonl, loss.png; a finished run started again returns at once.
    """
    if not train_rows or not dev_rows:
        raise UserError(f"{len(train_rows)} rows to train on and {len(dev_rows)} for dev: too few.")
    check_replicas(accelerator)
    weights = Trainable(module)
    groups = weights.groups(rate_factors or {})
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, weight_decay=weight_decay)
    log, best = LossLog(output, accelerator.is_main_process), Best(weights)
    mean = MovingAverage(weights, average)
    parts: dict[str, Part] = {"module": weights, "optimizer": optimizer, "average": mean}
    parts |= {"log": log, "best": best}
    share = {"process": accelerator.process_index, "num_processes": accelerator.num_processes}
    measure = dev_score or partial(
        mean_loss, module, loss, dev_rows, micro_batch_size, accelerator, size
    )
    with (
        Checkpoints(
            output / "checkpoints", every=save_every, settings=settings, accelerator=accelerator
        ) as checkpoints,
        progress_bar(title, steps) if log.writes else nullcontext(lambda rows: None) as advance,
    ):
        shown = 0
        for step in checkpoints.steps(steps, **parts):
            torch.manual_seed(derive_seed(seed, "step", step, accelerator.process_index))
            rate = learning_rate * rate_factor(step, steps, warmup)
            for group in optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            numbers = rows_of_step(len(train_rows), batch_size, seed=seed, step=step, **share)
            rows = [train_rows[number] for number in numbers]
            module.train()
            total, weight = add_up(loss, rows, micro_batch_size, accelerator, size, backward=True)
            norm = weights.average_gradients(accelerator, weight, max_grad_norm)
            optimizer.step()
            optimizer.zero_grad()
            mean.update()
            row = {"step": step + 1, "loss": total / weight, "grad_norm": norm, "rate": rate}
            if (step + 1) % eval_every == 0 or step + 1 == steps:
                module.eval()
                with mean.in_place():
                    row["dev_loss"] = measure()
                    best.offer(row["dev_loss"], step + 1)
            log.add(row)
            advance(step + 1 - shown)
            shown = step + 1
        # A finished run that is started again has no step left: it restores and comes here.
    if accelerator.is_main_process:
        plot(log.rows, output / "loss.png", title)
    return best.load()


def check_replicas(accelerator: Any) -> None:
    """Refuse launchers that shard a model: here every process holds all of it."""
    kind = str(getattr(accelerator, "distributed_type", "")).upper()
    if "DEEPSPEED" in kind or "FSDP" in kind or "MEGATRON" in kind:
        raise UserError(
            "this loop keeps the whole model on every device; launchers that shard it (DeepSpeed, "
            "FSDP) are not supported. Launch with configs/launch/gpus.yaml, and train an adapter; "
            "a model too large for that can be trained by `train.py grpo`, with "
            "configs/launch/fsdp.yaml or deepspeed_zero3.yaml."
        )


def rate_factor(step: int, steps: int, warmup: float) -> float:
    """Of the learning rate at a step: a line up over the warm-up, then a line down to 0."""
    rising = max(1, round(steps * warmup))
    if step < rising:
        return (step + 1) / rising
    return (steps - step) / max(1, steps - rising)


def add_up(
    loss: Loss[T],
    rows: Sequence[T],
    batch_size: int,
    accelerator: Any,
    size: Callable[[T], int] | None = None,
    backward: bool = False,
) -> tuple[float, float]:
    """The loss and the weight of the rows of all processes, and the gradients of this one's."""
    ordered = sorted(rows, key=size) if size else rows
    total, weight = 0.0, 0.0
    for start in range(0, len(ordered), batch_size):
        loss_sum, count = loss(ordered[start : start + batch_size])
        if backward:
            loss_sum.backward()  # accelerate's own would divide by a launcher's accumulation steps
        total, weight = total + loss_sum.item(), weight + count
    if accelerator.num_processes == 1:
        return total, weight
    both = torch.tensor([total, weight], dtype=torch.float64, device=accelerator.device)
    total, weight = accelerator.reduce(both, reduction="sum").tolist()
    return total, weight


@torch.no_grad()
def mean_loss(
    module: nn.Module,
    loss: Loss[T],
    rows: Sequence[T],
    batch_size: int,
    accelerator: Any,
    size: Callable[[T], int] | None = None,
) -> float:
    """The loss over all rows, without dropout, the rows shared out among the processes."""
    module.eval()
    mine = rows[accelerator.process_index :: accelerator.num_processes]
    total, weight = add_up(loss, mine, batch_size, accelerator, size)
    return total / weight


class Trainable:
    """The parameters of a module that are trained: what a checkpoint holds of it."""

    def __init__(self, module: nn.Module) -> None:
        self.named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.parameters = list(self.named.values())

    def state_dict(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self.named.items()}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        for name, parameter in self.named.items():
            parameter.copy_(state[name])

    def groups(self, factors: Mapping[str, float]) -> list[dict[str, Any]]:
        """The parameters by the factor of their learning rate: the first word that fits a name."""
        found: dict[float, list[nn.Parameter]] = {}
        for name, parameter in self.named.items():
            factor = next((value for word, value in factors.items() if word in name), 1.0)
            found.setdefault(factor, []).append(parameter)
        return [{"params": parameters, "factor": factor} for factor, parameters in found.items()]

    def average_gradients(self, accelerator: Any, weight: float, max_norm: float) -> float:
        """Sum the gradients over the processes, divide by the weight, clip; the norm before."""
        for parameter in self.parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        if accelerator.num_processes > 1:
            flat = torch.cat([p.grad.flatten() for p in self.parameters if p.grad is not None])
            flat = accelerator.reduce(flat, reduction="sum")
            sizes = [parameter.numel() for parameter in self.parameters]
            for parameter, part in zip(self.parameters, flat.split(sizes), strict=True):
                parameter.grad = part.view_as(parameter).clone()
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad /= weight
        return float(torch.nn.utils.clip_grad_norm_(self.parameters, max_norm))


class MovingAverage:
    """The exponential moving average of the weights: steadier than the weights of any one step."""

    def __init__(self, weights: Trainable, decay: float) -> None:
        self.weights = weights
        self.decay = decay
        self.updates = 0
        self.average = [parameter.detach().clone() for parameter in weights.parameters]

    @torch.no_grad()
    def update(self) -> None:
        """Count the weights in. The first steps weigh more, so that the start is soon forgotten."""
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 10))
        for average, parameter in zip(self.average, self.weights.parameters, strict=True):
            average.lerp_(parameter, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The module with the averaged weights, inside the block."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for average, parameter in zip(self.average, self.weights.parameters, strict=True):
            kept = parameter.clone()
            parameter.copy_(average)
            average.copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        return {"updates": self.updates, "average": self.average}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.updates = state["updates"]
        self.average = [
            saved.to(old.device) for saved, old in zip(state["average"], self.average, strict=True)
        ]


class Best:
    """The weights with the lowest dev loss so far, part of every checkpoint."""

    def __init__(self, weights: Trainable) -> None:
        self.weights = weights
        self.state: dict[str, Any] = {"dev_loss": None, "step": 0, "weights": {}}

    def offer(self, dev_loss: float, step: int) -> None:
        if self.state["dev_loss"] is None or dev_loss < self.state["dev_loss"]:
            kept = {name: tensor.clone() for name, tensor in self.weights.state_dict().items()}
            self.state = {"dev_loss": dev_loss, "step": step, "weights": kept}

    def load(self) -> Result:
        self.weights.load_state_dict(self.state["weights"])
        return Result(self.state["dev_loss"], self.state["step"])

    def state_dict(self) -> dict[str, Any]:
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state
