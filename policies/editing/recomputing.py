"""Gradient checkpointing (arXiv 1604.06174): activations are computed again in the backward pass.

Layers that are run again must not find the keys and values they left in a cache. So a prompt and
the sentence after it are read in one piece here, each row for itself: more is computed, since equal
prompts are not shared, and much less is kept.

Legend: B rows, S tokens of the longest, D width, R chosen rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from policies.reading.cached_reading import Piece
from rewriting.errors import UserError


def layers_of(model: Any) -> list[Any]:
    """The layers that can be run again; an error where the model has none."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    found = [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
    if not found:
        raise UserError(f"a {type(model).__name__} has no gradient checkpointing; turn it off.")
    return found


@contextmanager
def recomputing(model: Any, acting: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Let the layers forget their activations.

    acting: puts the adapter in place, once more when a layer is run again, after the role in which
    it was run has ended. The layers alone are in training mode, their dropout is not.
    """

    def run(function: Callable[..., Any], *inputs: Any) -> Any:
        def again(*inputs: Any) -> Any:
            with acting():
                return function(*inputs)

        return checkpoint(again, *inputs, use_reentrant=False)

    layers = layers_of(model)
    before = [layer.training for layer in layers]
    for layer in layers:
        layer.gradient_checkpointing, layer.training = True, True
        layer._gradient_checkpointing_func = run
    try:
        yield
    finally:
        for layer, training in zip(layers, before, strict=True):
            layer.gradient_checkpointing, layer.training = False, training


def read_at_once(model: Any, rows: Sequence[Sequence[int]], *, plain_head: bool) -> Piece:
    """Rows read from their beginning, without a cache."""
    width, device = max(map(len, rows)), model.device
    ids_BS = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=device)
    mask_BS = torch.tensor([[1] * len(r) + [0] * (width - len(r)) for r in rows], device=device)
    inputs = {"input_ids": ids_BS, "attention_mask": mask_BS, "use_cache": False}
    if plain_head:
        hidden_BSD = model.get_decoder()(**inputs).last_hidden_state
        return Piece(hidden_BSD, None, model.get_output_embeddings())
    output = model(**inputs, output_hidden_states=True)
    return Piece(output.hidden_states[-1], output.logits, None)


class Rest:
    """What was read after the prompts of some rows, with the face of a Reading."""

    def __init__(self, piece: Piece, rows: Sequence[int], starts: Sequence[int]) -> None:
        self.piece = piece
        self.rows_R1 = torch.tensor(rows)[:, None]
        self.starts_R1 = torch.tensor(starts)[:, None]

    def read(self, rows: Sequence[Sequence[int]]) -> Piece:
        """The piece of these tokens, which must be those that stand there."""
        hidden_BSD = self.piece.hidden_BSD
        places_RS = self.starts_R1 + torch.arange(max(map(len, rows)))
        index = (self.rows_R1, places_RS.clamp(max=hidden_BSD.shape[1] - 1))
        logits_BSV = self.piece._logits_BSV
        logits_RSV = None if logits_BSV is None else logits_BSV[index]
        return Piece(hidden_BSD[index], logits_RSV, self.piece._head)
