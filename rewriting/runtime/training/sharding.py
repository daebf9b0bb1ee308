"""What is particular about launchers that shard a model: FSDP2 and DeepSpeed.

Sampling and scoring need the weights whole: how many tokens a process samples, and how many texts
its rewards read, differs from process to process, while every gathering of a sharded layer is a
meeting of all of them. So the weights are gathered once, everything without a gradient is done,
and they are dealt out again (`whole_weights`). It costs the memory of the model in the precision
of the computation; gradients and optimizer state stay sharded all the time. The other way, keeping
all processes in step token by token, would let the slowest one set the pace of every token.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor


def is_fsdp2(accelerator: Any) -> bool:
    return bool(getattr(accelerator, "is_fsdp2", False))


def is_deepspeed(accelerator: Any) -> bool:
    return str(getattr(accelerator, "distributed_type", "")).endswith("DEEPSPEED")


@contextmanager
def whole_weights(prepared: Any, accelerator: Any) -> Iterator[None]:
    """Inside the block no process has to wait for another one, whatever part it calls."""
    if is_fsdp2(accelerator):
        with _unsharded(prepared, bool(accelerator.state.fsdp_plugin.reshard_after_forward)):
            yield
    elif is_deepspeed(accelerator) and accelerator.state.deepspeed_plugin.zero_stage == 3:
        import deepspeed
        from trl.models.utils import add_hooks, remove_hooks

        with deepspeed.zero.GatheredParameters(list(prepared.parameters())):
            remove_hooks(prepared)
            try:
                yield
            finally:
                add_hooks(prepared)
    else:
        yield


@contextmanager
def _unsharded(root: Any, reshard: bool) -> Iterator[None]:
    from torch.distributed.fsdp import FSDPModule

    with torch.no_grad():
        root(_nothing)  # FSDP learns here which module is the outermost
    units = [module for module in root.modules() if isinstance(module, FSDPModule)]
    root.set_reshard_after_forward(False)
    for unit in units:
        unit.unshard()
    try:
        yield
    finally:
        for unit in units:
            unit.reshard()
        root.set_reshard_after_forward(reshard)
        root.set_reshard_after_forward(False, recurse=False)  # its backward pass comes at once
        if hasattr(root, "reset_iter_state"):
            # Which layers ran last is what backward passes prefetch by: the same everywhere.
            root.reset_iter_state()


def _nothing() -> None:
    """A forward pass that reads nothing."""


def plain_again(root: nn.Module) -> None:
    """Undo `fully_shard`: whole parameters, no hooks, the classes that the modules had.

    PyTorch has no way back. Without one, everything after a training (saving, measuring, a second
    stage that trains other parts, a copy of the model) would have to be made by all processes.
    """
    from torch.distributed._composable.contract import REGISTRY_KEY, STATE_KEY
    from torch.distributed._composable_state import _module_state_mapping
    from torch.distributed.fsdp import FSDPModule

    units: list[Any] = [module for module in root.modules() if isinstance(module, FSDPModule)]
    for unit in units:
        unit.reshard()
    sharded: dict[Any, nn.Parameter] = {}  # tied parameters stay tied
    for module in root.modules():
        for name, parameter in module._parameters.items():
            if isinstance(parameter, DTensor):
                if parameter not in sharded:
                    full = parameter.full_tensor().detach()
                    sharded[parameter] = nn.Parameter(full, parameter.requires_grad)
                module._parameters[name] = sharded[parameter]
    for unit in units:
        state = unit._get_fsdp_state()
        state._pre_forward_hook_handle.remove()
        state._post_forward_hook_handle.remove()
        for group in state._fsdp_param_groups:
            for handle in (
                *group._module_to_pre_save_state_dict_hook_handle.values(),
                *group._module_to_pre_load_state_dict_hook_handle.values(),
            ):
                handle.remove()
        for key in (STATE_KEY, REGISTRY_KEY):
            unit.__dict__.pop(key, None)
        _module_state_mapping.pop(unit, None)
        unit.__class__ = type(unit).__mro__[2]
