"""State dictionaries as a flat set of tensors and a JSON tree: what safetensors can hold.

Optimizer states nest tensors in dictionaries with number keys, lists and tuples. `pack` takes the
tensors out and leaves marked places; `unpack` puts them back. Nothing is pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

TENSOR, TUPLE, PAIRS = "__tensor__", "__tuple__", "__pairs__"


def pack(tree: Any) -> tuple[dict[str, Tensor], Any]:
    """Split a tree into its tensors, by path, and the rest as JSON."""
    tensors: dict[str, Tensor] = {}
    return tensors, _pack(tree, "", tensors)


def _pack(node: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    import torch

    if isinstance(node, torch.Tensor):
        # A copy: safetensors refuses tensors that share memory, as tied weights do.
        name = f"{len(tensors)}{path}"  # the number keeps "a/b" and "a" → "b" apart
        tensors[name] = node.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {TENSOR: name}
    if isinstance(node, dict):
        items = [[key, _pack(value, f"{path}/{key}", tensors)] for key, value in node.items()]
        if all(isinstance(key, str) for key in node):
            return dict(items)
        if not all(isinstance(key, str | int) for key in node):
            raise TypeError(f"cannot save keys other than texts and numbers at {path or 'the top'}")
        return {PAIRS: items}
    if isinstance(node, list | tuple):
        children = [_pack(child, f"{path}/{i}", tensors) for i, child in enumerate(node)]
        return {TUPLE: children} if isinstance(node, tuple) else children
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise TypeError(f"cannot save {type(node).__name__} at {path or 'the top'} of a state")


def unpack(node: Any, tensors: Mapping[str, Any]) -> Any:
    """The tree that `pack` took apart."""
    if isinstance(node, dict):
        if TENSOR in node:
            return tensors[node[TENSOR]]
        if TUPLE in node:
            return tuple(unpack(child, tensors) for child in node[TUPLE])
        if PAIRS in node:
            return {key: unpack(value, tensors) for key, value in node[PAIRS]}
        return {key: unpack(value, tensors) for key, value in node.items()}
    if isinstance(node, list):
        return [unpack(child, tensors) for child in node]
    return node
