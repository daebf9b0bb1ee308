"""Rows of tokens, read by a causal language model piece by piece, its keys and values kept.

    reading = Reading(model)
    prompts = reading.read([[5, 6, 7], [8]])      # hidden states and logits of the prompts
    reading.select([0, 0, 1])                     # two rows go on from the first prompt
    sentences = reading.read([[9], [10, 11], [12]])

A prompt that many samples share is read once, in training as well: gradients flow through the
cache. Rows are padded on the right of each piece; the padding in the middle of a row is masked, and
its positions are counted without it, so that a row's numbers do not depend on its neighbours.

Legend: B rows, S tokens of a piece, T tokens so far, N chosen places, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Piece:
    """What a model says about the tokens it has just read."""

    hidden_BSD: Tensor
    _logits_BSV: Tensor | None
    _head: Any

    @property
    def head(self) -> Any:
        """What makes logits of hidden states; None where they are made already."""
        return None if self._logits_BSV is not None else self._head

    def logits(self, rows: Sequence[int], columns: Sequence[int]) -> Tensor:
        """[N, V], for the tokens that follow these places: not one place more is computed."""
        if self._logits_BSV is not None:
            chosen: Tensor = self._logits_BSV[list(rows), list(columns)]
        else:
            chosen = self._head(self.hidden_BSD[list(rows), list(columns)])
        return chosen


class Reading:
    """How far a model has read some rows.

    plain_head: whether the logits are the output layer on the last hidden state, and nothing more
    (rewriting/runtime/language_models/log_probs.py); if not, all logits of a piece are computed.
    """

    def __init__(self, model: Any, *, plain_head: bool = True) -> None:
        from transformers import DynamicCache

        self.model = model
        self.plain_head = plain_head
        self.cache = DynamicCache(config=model.config)
        self.mask_BT: Tensor | None = None

    def read(self, rows: Sequence[Sequence[int]]) -> Piece:
        """Read on: a piece for each row, not empty."""
        width = max(map(len, rows))
        device = self.model.device
        ids_BS = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=device)
        new_BS = torch.tensor(
            [[1] * len(row) + [0] * (width - len(row)) for row in rows], device=device
        )
        if self.mask_BT is None:
            self.mask_BT = new_BS[:, :0]
        read_B1 = self.mask_BT.sum(dim=1, keepdim=True)
        self.mask_BT = torch.cat([self.mask_BT, new_BS], dim=1)
        inputs = {
            "input_ids": ids_BS,
            "attention_mask": self.mask_BT,
            # Padding takes the place of the token before it: one within the model's range.
            "position_ids": read_B1 + new_BS.cumsum(dim=1) - 1,
            "past_key_values": self.cache,
            "use_cache": True,
        }
        if self.plain_head:
            hidden_BSD = self.model.get_decoder()(**inputs).last_hidden_state
            return Piece(hidden_BSD, None, self.model.get_output_embeddings())
        output = self.model(**inputs, output_hidden_states=True)
        return Piece(output.hidden_states[-1], output.logits, None)

    def select(self, rows: Sequence[int]) -> None:
        """Go on with these rows; one may come several times."""
        if self.mask_BT is None:
            raise ValueError("nothing has been read yet")
        if list(rows) == list(range(len(self.mask_BT))):
            return
        index = torch.tensor(list(rows), device=self.mask_BT.device)
        self.mask_BT = self.mask_BT[index]
        self.cache.batch_select_indices(index)
