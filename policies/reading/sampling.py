"""Sampling in which every row has its own seed.

A sample from softmax(logits) is the argmax of logits plus Gumbel noise (Gumbel 1954; Maddison et
al., arXiv 1411.0030). With the noise of a row drawn from the row's own generator, its sample does
not depend on what else is in the batch, on the order of the batch, or on how many processes share
it; up to the rounding of the logits.

Legend: B rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LogitsProcessor


def gumbel_noise(generators: Sequence[torch.Generator], num_choices: int) -> torch.Tensor:
    """Standard Gumbel noise [B, V] on the CPU, row i drawn from generators[i]."""
    uniform_BV = torch.stack([torch.rand(num_choices, generator=g) for g in generators])
    tiny = torch.finfo(uniform_BV.dtype).tiny
    return -torch.log(-torch.log(uniform_BV.clamp(min=tiny, max=1 - 1e-7)))


class RowSampler(LogitsProcessor):
    """Turns greedy decoding into sampling: `generate(do_sample=False, logits_processor=[…])`.

    temperature and top_p shape the distribution before the noise; top_p 1 leaves it whole.
    """

    def __init__(self, seeds: Sequence[int], temperature: float = 1.0, top_p: float = 1.0) -> None:
        if temperature <= 0 or not 0 < top_p <= 1:
            raise ValueError(f"temperature must be > 0, top_p in (0, 1]: {temperature}, {top_p}")
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.temperature = temperature
        self.top_p = top_p

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """scores [B, V] → scores whose argmax is the sample."""
        if len(scores) != len(self.generators):
            raise ValueError(f"{len(scores)} rows for {len(self.generators)} seeds")
        logits_BV = nucleus(scores.float() / self.temperature, self.top_p)
        noise_BV = gumbel_noise(self.generators, logits_BV.shape[-1]).to(logits_BV.device)
        return logits_BV + noise_BV


def nucleus(logits_BV: torch.Tensor, top_p: float) -> torch.Tensor:
    """Logits with everything outside the smallest set of mass top_p at minus infinity."""
    if top_p >= 1:
        return logits_BV
    sorted_BV, order_BV = logits_BV.sort(dim=-1, descending=True)
    mass_BV = sorted_BV.softmax(dim=-1)
    # The mass before a token decides, so that the most likely one always stays.
    outside_BV = (mass_BV.cumsum(dim=-1) - mass_BV) >= top_p
    dropped_BV = torch.zeros_like(outside_BV).scatter(-1, order_BV, outside_BV)
    return logits_BV.masked_fill(dropped_BV, -torch.inf)
