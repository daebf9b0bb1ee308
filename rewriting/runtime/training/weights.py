"""The trained weights of a module, whole or as they lie on this process.

Under FSDP2 a parameter is a DTensor, of which every process holds a part. What is saved is always
whole, by name, on the CPU: a checkpoint of eight processes goes on with four, or with one. What is
only kept for a while (the best weights, their moving average) stays in parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

Tensors = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Result:
    """The best dev loss, and the number of steps after which it was reached."""

    dev_loss: float
    step: int


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor, on the CPU. Of a sharded one, all processes must ask together."""
    tensor = tensor.detach()
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).cpu()


def part_of(tensor: Tensor, parameter: Tensor) -> Tensor:
    """What this process holds of a whole tensor, cut and placed as a parameter is."""
    tensor = tensor.to(parameter.device)
    if not isinstance(parameter, DTensor) or tensor.shape != parameter.shape:
        return tensor
    # No source rank: every process has read all of it, and nothing has to be sent.
    mesh, placements = parameter.device_mesh, parameter.placements
    return distribute_tensor(tensor, mesh, placements, src_data_rank=None)


def local(tensor: Tensor) -> Tensor:
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


class Weights:
    """Named parameters: a part of a checkpoint. By default those of a module that are trained.

    keeps: whether this process gets what is gathered; the others only take part in the gathering.
    """

    def __init__(self, named: nn.Module | Mapping[str, nn.Parameter], keeps: bool = True) -> None:
        if isinstance(named, nn.Module):
            named = {name: p for name, p in named.named_parameters() if p.requires_grad}
        self.named = dict(named)
        self.parameters = list(self.named.values())
        self.keeps = keeps

    def state_dict(self) -> Tensors:
        return self.gathered(self.named)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.put(self.parts(state))

    def gathered(self, tensors: Mapping[str, Tensor]) -> Tensors:
        """Whole tensors, put together from the parts on all processes."""
        found = ((name, whole(tensor)) for name, tensor in tensors.items())
        return {name: tensor for name, tensor in found if self.keeps}

    def parts(self, state: Mapping[str, Tensor]) -> Tensors:
        """This process's parts of whole tensors."""
        return {name: part_of(state[name], parameter) for name, parameter in self.named.items()}

    def copy(self) -> Tensors:
        """A copy of this process's weights as they are now."""
        return {name: parameter.detach().clone() for name, parameter in self.named.items()}

    @torch.no_grad()
    def put(self, tensors: Mapping[str, Tensor]) -> None:
        for name, parameter in self.named.items():
            local(parameter).copy_(local(tensors[name]))

    def groups(self, factors: Mapping[str, float], learning_rate: float) -> list[dict[str, Any]]:
        """The parameters by the factor of their learning rate: the first word that fits a name."""
        found: dict[float, list[nn.Parameter]] = {}
        for name, parameter in self.named.items():
            factor = next((value for word, value in factors.items() if word in name), 1.0)
            found.setdefault(factor, []).append(parameter)
        return [{"params": rows, "lr": learning_rate * factor} for factor, rows in found.items()]


class OptimizerState:
    """The state of an optimizer by the names of its parameters, as a part of a checkpoint."""

    def __init__(self, optimizer: Any, weights: Weights) -> None:
        self.optimizer = optimizer
        self.weights = weights

    def state_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, parameter in self.weights.named.items():
            state = dict(self.optimizer.state.get(parameter, {}))
            found[name] = {key: whole(v) if torch.is_tensor(v) else v for key, v in state.items()}
            if not self.weights.keeps:
                found.clear()
        groups = self.optimizer.param_groups
        plain = [{k: v for k, v in group.items() if k != "params"} for group in groups]
        return {"state": found, "groups": plain}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        for name, parameter in self.weights.named.items():
            state = saved["state"][name]
            if state:
                self.optimizer.state[parameter] = {
                    # A count of steps stays on the CPU, where the optimizer made it.
                    key: part_of(v, parameter) if torch.is_tensor(v) and v.ndim else v
                    for key, v in state.items()
                }
        for group, values in zip(self.optimizer.param_groups, saved["groups"], strict=True):
            group.update(values)


class MovingAverage:
    """The exponential moving average of the weights: steadier than the weights of any one step.

    decay 0 is the weights themselves, and costs nothing.
    """

    def __init__(self, weights: Weights, decay: float) -> None:
        self.weights = weights
        self.decay = decay
        self.updates = 0
        self.average = weights.copy() if decay else {}

    @torch.no_grad()
    def update(self) -> None:
        """Count the weights in. The first steps weigh more, so that the start is soon forgotten."""
        self.updates += 1
        decay = min(self.decay, self.updates / (self.updates + 10))
        now = self.weights.named if self.decay else {}
        for name, parameter in now.items():
            local(self.average[name]).lerp_(local(parameter), 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The module with the averaged weights, inside the block."""
        if not self.decay:
            yield
            return
        kept = self.weights.copy()
        self.weights.put(self.average)
        try:
            yield
        finally:
            self.weights.put(kept)

    def state_dict(self) -> dict[str, Any]:
        return {"updates": self.updates, "average": self.weights.gathered(self.average)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.updates = state["updates"]
        self.average = self.weights.parts(state["average"]) if self.decay else {}


class Best:
    """The weights with the lowest dev loss so far, part of every checkpoint."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.dev_loss: float | None = None
        self.step = 0
        self.kept: Tensors = {}

    def offer(self, dev_loss: float, step: int) -> None:
        if self.dev_loss is None or dev_loss < self.dev_loss:
            self.dev_loss, self.step, self.kept = dev_loss, step, self.weights.copy()

    def load(self) -> Result | None:
        """Put the best weights in place; None where nothing was ever measured."""
        if self.dev_loss is None:
            return None
        self.weights.put(self.kept)
        return Result(self.dev_loss, self.step)

    def state_dict(self) -> dict[str, Any]:
        kept = self.weights.gathered(self.kept)
        return {"dev_loss": self.dev_loss, "step": self.step, "weights": kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.dev_loss, self.step = state["dev_loss"], state["step"]
        self.kept = {} if self.dev_loss is None else self.weights.parts(state["weights"])
