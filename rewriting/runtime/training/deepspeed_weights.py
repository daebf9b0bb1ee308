"""The trained weights and the state of the optimizer where DeepSpeed holds them in parts.

Its optimizer keeps the weights in float32 and their moments, flattened and shared out; the module
has copies in the precision of the computation, under ZeRO 3 in parts too. Everything here is asked
of all processes together, and whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rewriting.errors import UserError
from rewriting.runtime.processes import num_processes, process_index
from rewriting.runtime.training.weights import Tensors, Weights


class DeepSpeedWeights(Weights):
    """Named parameters of a module that DeepSpeed has prepared, always whole and on the CPU."""

    def state_dict(self) -> Tensors:
        return self.gathered(self.copy())

    def gathered(self, tensors: Mapping[str, Tensor]) -> Tensors:
        return dict(tensors) if self.keeps else {}

    def parts(self, state: Mapping[str, Tensor]) -> Tensors:
        return dict(state)

    def copy(self) -> Tensors:
        from deepspeed.utils import safe_get_full_fp32_param

        return {n: safe_get_full_fp32_param(p).detach().cpu() for n, p in self.named.items()}

    @torch.no_grad()
    def put(self, tensors: Mapping[str, Tensor]) -> None:
        from deepspeed import utils, zero

        for name, parameter in self.named.items():
            value = tensors[name].to(parameter.device)
            if hasattr(parameter, "ds_id"):  # ZeRO 3: parts of the same size, the last one padded
                flat = nn.functional.pad(value.flatten(), (0, -value.numel() % num_processes()))
                utils.safe_set_local_fp32_param(
                    parameter, flat.chunk(num_processes())[process_index()]
                )
            else:
                utils.safe_set_full_fp32_param(parameter, value)
            with zero.GatheredParameters([parameter], modifier_rank=0):
                parameter.copy_(value)


class DeepSpeedFrozenWeights(Weights):
    """Parameters that nobody trains, such as a reference: the optimizer has no copy of them, and
    ZeRO 3 leaves a plain look at one empty. Always whole and on the CPU."""

    def state_dict(self) -> Tensors:
        return self.gathered(self.copy())

    def gathered(self, tensors: Mapping[str, Tensor]) -> Tensors:
        return dict(tensors) if self.keeps else {}

    def parts(self, state: Mapping[str, Tensor]) -> Tensors:
        return dict(state)

    def copy(self) -> Tensors:
        from deepspeed import zero

        found: Tensors = {}
        for name, parameter in self.named.items():
            with zero.GatheredParameters([parameter]):
                found[name] = parameter.detach().clone().cpu()
        return found

    @torch.no_grad()
    def put(self, tensors: Mapping[str, Tensor]) -> None:
        from deepspeed import zero

        for name, parameter in self.named.items():
            with zero.GatheredParameters([parameter], modifier_rank=0):
                if tensors[name].shape != parameter.shape:
                    raise UserError(
                        "this checkpoint holds no reference for the KL penalty, as those of "
                        "earlier versions under ZeRO 3 do not. Start the run in another folder."
                    )
                parameter.copy_(tensors[name].to(parameter.device))


class DeepSpeedOptimizerState:
    """What each process keeps of the optimizer's state, as a part of a checkpoint.

    It is cut where DeepSpeed cuts it, so a run goes on with as many processes as before.
    """

    def __init__(self, optimizer: Any, weights: Weights) -> None:
        self.optimizer = optimizer
        self.weights = weights

    def _inner(self) -> Any:
        found: Any = self.optimizer
        while hasattr(found, "optimizer"):
            found = found.optimizer
        return found

    def _flat(self) -> list[Tensor]:
        """The flat parameters of this process, in DeepSpeed's order."""
        zero3 = getattr(self.optimizer.optimizer, "fp32_partitioned_groups_flat", None)
        if zero3 is not None:  # which lends them to the inner optimizer one by one
            return list(zero3)
        return [flat for group in self._inner().param_groups for flat in group["params"]]

    def state_dict(self) -> dict[str, Any]:
        state = self._inner().state
        own = [
            {k: torch.as_tensor(v).cpu() for k, v in state[flat].items()} for flat in self._flat()
        ]
        all_states: list[Any] | None = [None] * num_processes() if self.weights.keeps else None
        torch.distributed.gather_object(own, all_states, dst=0)
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return {"processes": all_states, "rates": rates}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        before = len(saved["processes"])
        if before != num_processes():
            raise UserError(
                f"under DeepSpeed a run goes on with as many processes as before: {before}, not "
                f"{num_processes()}."
            )
        state = self._inner().state
        own = saved["processes"][process_index()]
        for flat, values in zip(self._flat(), own, strict=True):
            moments = {k: v.to(flat.device) if v.ndim else v for k, v in values.items()}
            state[flat] = moments
        for group, rate in zip(self.optimizer.param_groups, saved["rates"], strict=True):
            group["lr"] = rate


def whole_parameters(module: nn.Module) -> dict[int, nn.Parameter]:
    """A plain parameter for each that ZeRO 3 holds in parts, by the identity of the old one."""
    from deepspeed import zero

    sharded = [p for p in module.parameters() if hasattr(p, "ds_id")]
    with zero.GatheredParameters(sharded):
        return {id(p): nn.Parameter(p.detach().clone(), p.requires_grad) for p in sharded}


def put_in_place(module: nn.Module, whole: Mapping[int, nn.Parameter]) -> None:
    """After DeepSpeed has gone: plain parameters again."""
    for part in module.modules():
        part._parameters = {n: whole.get(id(p), p) for n, p in part._parameters.items()}
