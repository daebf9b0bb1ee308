"""What a generator expects to earn, from the decoder's hidden state before each token."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ValueHead(nn.Module):
    """One number per hidden state, in the precision of its weights; 0 before it is trained.

    A hidden layer of its own: the decoder's last state is made to tell the next token, and what a
    whole response will earn is not on its surface.
    """

    def __init__(self, hidden_size: int, width: int = 128) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size)
        self.hidden = nn.Linear(hidden_size, width)
        self.value = nn.Linear(width, 1)
        nn.init.zeros_(self.value.weight)
        nn.init.zeros_(self.value.bias)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """[N]: the value at each of the states [N, D]."""
        with torch.autocast(hidden_ND.device.type, enabled=False):
            inner_NK = torch.tanh(self.hidden(self.norm(hidden_ND.to(self.norm.weight.dtype))))
            value: Tensor = self.value(inner_NK).squeeze(-1)
            return value.float()
