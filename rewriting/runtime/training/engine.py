"""A module on an accelerator: prepared, stepped, clipped, gathered, and given back plain.

The accelerator's launcher decides how the module is held: on one device, as copies (DDP), in parts
(FSDP2, DeepSpeed). Nothing here or in the loops asks which; what is particular about sharding
stands in sharding.py.

Losses are sums over the rows of all processes, divided once by their weight: neither micro-batches
nor the number of processes, nor the launcher's gradient_accumulation_steps changes a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import nn

from rewriting.errors import UserError
from rewriting.runtime.training import deepspeed_weights as held
from rewriting.runtime.training.sharding import is_deepspeed, is_fsdp2, plain_again, whole_weights
from rewriting.runtime.training.weights import OptimizerState, Weights

T = TypeVar("T")
Loss = Callable[[T], tuple[Any, ...]]
"""A micro-batch → the sum of its losses, and numbers to be added up beside it."""


class Door(nn.Module):
    """A module with one way in: every computation with a gradient is a call of `forward`.

    That is where DDP, FSDP2 and DeepSpeed do their work. A task is a function that calls whatever
    parts of the module it likes; it returns tensors in tuples, in which the wrappers find them.

    layers: names of the classes that FSDP2 gathers one by one. A task must then call every one of
    them equally often on all processes. Without names, all of the module is gathered at once.
    """

    def __init__(self, module: nn.Module, layers: Sequence[str] = ()) -> None:
        super().__init__()
        self.module = module
        present = {type(part).__name__ for part in module.modules()}
        self._no_split_modules = [name for name in layers if name in present]

    def forward(self, task: Callable[..., Any], *inputs: Any) -> Any:
        return task(*inputs)


class Engine:
    """The door of a module, its optimizer and its schedule, prepared by the accelerator.

    schedule: step → the factor of the learning rate. rate_factors: another factor for parameters
    whose name holds a word. layers: of the Door.
    """

    def __init__(
        self,
        module: nn.Module,
        accelerator: Any,
        *,
        learning_rate: float,
        weight_decay: float = 0.0,
        schedule: Callable[[int], float] = lambda step: 1.0,
        rate_factors: Mapping[str, float] | None = None,
        max_grad_norm: float = 1.0,
        layers: Sequence[str] = (),
    ) -> None:
        if accelerator.mixed_precision == "fp16":
            raise UserError("mixed precision fp16 is not supported here; use bf16 or no.")
        self.accelerator = accelerator
        self.inner = module
        self.max_grad_norm = max_grad_norm
        door = Door(module, layers)
        groups = Weights(module).groups(rate_factors or {}, learning_rate)
        optimizer = torch.optim.AdamW(groups, lr=learning_rate, weight_decay=weight_decay)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
        accelerator.step_scheduler_with_optimizer = False  # a step may have several updates
        self._tell_launcher(door)
        prepared = accelerator.prepare(door, optimizer, scheduler)
        self.door, self.optimizer, self.scheduler = prepared
        if hasattr(self.door, "set_reduce_scatter_unused_params"):
            self.door.set_reduce_scatter_unused_params(True)
        self.weights = Weights(module, accelerator.is_main_process)
        self.optimizer_state: Any = OptimizerState(self.optimizer, self.weights)
        if is_deepspeed(accelerator):
            self.weights = held.DeepSpeedWeights(module, accelerator.is_main_process)
            self.optimizer_state = held.DeepSpeedOptimizerState(self.optimizer, self.weights)

    def _tell_launcher(self, door: Door) -> None:
        """What a sharding launcher has to know before it prepares anything."""
        state = self.accelerator.state
        if is_fsdp2(self.accelerator):
            state.fsdp_plugin.transformer_cls_names_to_wrap = door._no_split_modules
        if is_deepspeed(self.accelerator):
            told = state.deepspeed_plugin.deepspeed_config
            told["gradient_clipping"] = self.max_grad_norm
            told["train_micro_batch_size_per_gpu"] = 1  # there is no data loader to ask
            told["zero_allow_untested_optimizer"] = True

    # ---- without gradients

    def whole(self) -> AbstractContextManager[None]:
        """Gather the whole weights on every process, for work that needs no gradient."""
        return whole_weights(self.door, self.accelerator)

    def total(self, numbers: Sequence[float]) -> list[float]:
        """Each number summed over the processes."""
        if self.accelerator.num_processes == 1:
            return list(numbers)
        both = torch.tensor(numbers, dtype=torch.float64, device=self.accelerator.device)
        summed: list[float] = self.accelerator.reduce(both, reduction="sum").tolist()
        return summed

    def frozen(self, named: Mapping[str, nn.Parameter]) -> Weights:
        """Parameters of the module that are not trained, as a part of a checkpoint."""
        kind = held.DeepSpeedFrozenWeights if is_deepspeed(self.accelerator) else Weights
        return kind(named, self.accelerator.is_main_process)

    # ---- one optimizer step

    def update(
        self,
        loss: Loss[T],
        batches: Sequence[T],
        *,
        weight: float | None = None,
        idle: T | None = None,
        stop: Callable[[list[float]], bool] | None = None,
        name: str = "",
    ) -> tuple[list[float], float | None]:
        """An optimizer step on the micro-batches of all processes.

        weight: what the losses of all processes are divided by; None: the first number that `loss`
        gives beside the sum, added up. idle: a micro-batch for a process that has none at all.
        stop: asked with the sums before the step; True: no step is taken. name: of this step, for
        errors. Returns the sums over all processes, the loss first, and the norm of the gradient
        before it was clipped, or None where no step was taken.
        """
        accelerator = self.accelerator
        if weight is None and is_deepspeed(accelerator):
            weight = self._weight(loss, batches)
        scale = accelerator.num_processes * accelerator.gradient_accumulation_steps
        sums: list[float] = []
        passes = self._most(len(batches))
        for number in range(passes):
            has_rows, last = number < len(batches), number == passes - 1
            batch: Any = batches[number] if has_rows else (batches[0] if batches else idle)
            accelerator.sync_gradients = last
            # FSDP2 hands round every micro-batch: kept whole, its gradients would not be sharded.
            waits = not last and not is_fsdp2(accelerator)
            with accelerator.no_sync(self.door) if waits else nullcontext():
                with accelerator.autocast():
                    loss_sum, *figures = self.door(self._task, loss, batch)
                # Every process makes the same calls: one without rows repeats some for nothing.
                accelerator.backward(loss_sum * (scale / (weight or 1.0) if has_rows else 0.0))
            values = [float(value) * has_rows for value in (loss_sum.detach(), *figures)]
            sums = [a + b for a, b in zip(sums or [0.0] * len(values), values, strict=True)]
        accelerator.sync_gradients = True
        sums = self.total(sums)
        return sums, self._step(sums, 1.0 if weight is not None else sums[1], stop, name)

    def _step(
        self,
        sums: list[float],
        divisor: float,
        stop: Callable[[list[float]], bool] | None,
        name: str,
    ) -> float | None:
        # DeepSpeed has clipped and stepped in the last backward pass, and keeps its gradients.
        if stop is not None and stop(sums) and not is_deepspeed(self.accelerator):
            self.optimizer.zero_grad()
            return None
        if not is_deepspeed(self.accelerator):
            for parameter in self.weights.parameters:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                elif divisor != 1:
                    parameter.grad.div_(divisor)
        found = self.accelerator.clip_grad_norm_(self.door.parameters(), self.max_grad_norm)
        norm = float(found.full_tensor() if hasattr(found, "full_tensor") else found or 0.0)
        if not math.isfinite(norm):
            raise UserError(
                f"{name + ': ' if name else ''}the gradient is {norm}, so the training has "
                "diverged and stops. The last checkpoint is from before. Train in another folder "
                "with a lower learning_rate, or look for the loss that is not a number."
            )
        self.optimizer.step()
        self.optimizer.zero_grad()
        return norm

    def _task(self, loss: Loss[T], batch: T) -> tuple[Any, ...]:
        """The loss of a micro-batch, on which every parameter of a copy depends.

        DDP waits for the gradient of each of them; a batch may well not use one.
        """
        loss_sum, *figures = loss(batch)
        if self.accelerator.num_processes > 1 and not (
            is_fsdp2(self.accelerator) or is_deepspeed(self.accelerator)
        ):
            loss_sum = loss_sum + sum(p.sum() * 0.0 for p in self.weights.parameters)
        return (loss_sum, *figures)

    def _most(self, count: int) -> int:
        """The largest count of any process."""
        counts = torch.tensor([count], device=self.accelerator.device)
        return int(self.accelerator.gather(counts).max())

    @torch.no_grad()
    def _weight(self, loss: Loss[T], batches: Sequence[T]) -> float:
        """The weight of all losses from a pass of its own, drawn with the same random numbers."""
        with torch.random.fork_rng(), self.whole():
            weight = sum(float(loss(batch)[1]) for batch in batches)
        return self.total([weight])[0]

    # ---- the end

    def release(self) -> None:
        """Leave the module plain and whole on every process, as it was before."""
        if is_fsdp2(self.accelerator):
            plain_again(self.door)
        self.accelerator.unwrap_model(self.door, keep_fp32_wrapper=False)
        if is_deepspeed(self.accelerator):
            whole = held.whole_parameters(self.inner)
            self.accelerator.free_memory()
            held.put_in_place(self.inner, whole)
        else:
            self.accelerator.free_memory()


def in_batches(
    rows: Sequence[T], batch_size: int, size: Callable[[T], int] | None = None
) -> list[list[T]]:
    """Rows in micro-batches, those of similar size together, so that little is padded.

    Rows of the same size stay in their order: samples of one exchange, whose prompt an agent may
    then read once, stay together.
    """
    ordered = sorted(rows, key=size) if size else list(rows)
    return [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]
