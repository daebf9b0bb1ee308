"""Sampling with one seeded uniform number per row and token, on the device of the logits.

A row's numbers come from the row's own seed, and its token is where the cumulative probability
passes its number (inverse transform sampling). So a sample does not depend on what else is in the
batch, on the order of the batch, or on how many processes share it; up to the rounding of the
logits.

Legend: B rows, R rows that are still being written, T tokens, V vocabulary, K blocks of it,
W width of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor
from transformers import LogitsProcessor

BLOCK: Final = 512
"""Words whose probabilities are added up first: the cumulative sum then runs over blocks, and over
the words of one block alone, instead of the whole vocabulary."""


def uniforms(seeds: Sequence[int], num_tokens: int, device: Any = "cpu") -> Tensor:
    """Numbers in [0, 1) of shape [B, T] in float64: row i of seeds[i], on any device the same."""
    rows = [
        torch.rand(num_tokens, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        for seed in seeds
    ]
    return torch.stack(rows).to(device)


def draw(logits_RV: Tensor, uniform_R: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A token per row from softmax(logits), its log-probability, [R] each; all probabilities.

    uniform_R in [0, 1) decides: 0 takes the first word that has any probability. A logit of minus
    infinity is never drawn. The probabilities [R, V] are for `row_entropies`.
    """
    prob_RV = logits_RV.float().softmax(dim=-1)
    last = prob_RV.shape[-1] - 1
    sum_RK = _block_sums(prob_RV)
    block_R1, rest_R1 = _invert(sum_RK, uniform_R[:, None].to(sum_RK.device))
    word_RW = block_R1 * BLOCK + torch.arange(min(BLOCK, last + 1), device=prob_RV.device)
    weight_RW = prob_RV.gather(1, word_RW.clamp(max=last)).masked_fill(word_RW > last, 0.0)
    place_R1, _ = _invert(weight_RW, rest_R1)
    chosen_R1 = block_R1 * BLOCK + place_R1
    # The sum inside of softmax is rounded; that of the blocks hardly is, and corrects it.
    chosen_prob_R = prob_RV.gather(1, chosen_R1)[:, 0] / sum_RK.double().sum(dim=-1)
    return chosen_R1[:, 0], chosen_prob_R.log().float(), prob_RV


def row_entropies(
    logits_RV: Tensor, chosen_R: Tensor, log_prob_R: Tensor, prob_RV: Tensor
) -> Tensor:
    """[R], of softmax(logits) in nats; the rest is what `draw` gave for these logits."""
    log_total_R = logits_RV.gather(1, chosen_R[:, None])[:, 0] - log_prob_R
    # A logit of minus infinity has the probability 0 and adds nothing: nansum passes it by.
    return log_total_R - (prob_RV * logits_RV).nansum(dim=-1) / prob_RV.sum(dim=-1)


def _block_sums(prob_RV: Tensor) -> Tensor:
    """[R, K], the last block being what is left."""
    num_whole, left = divmod(prob_RV.shape[-1], BLOCK)
    sum_RK = prob_RV[:, : num_whole * BLOCK].unflatten(-1, (num_whole, BLOCK)).sum(dim=-1)
    if not left:
        return sum_RK
    return torch.cat([sum_RK, prob_RV[:, -left:].sum(dim=-1, keepdim=True)], dim=-1)


def _invert(weight_RK: Tensor, share_R1: Tensor) -> tuple[Tensor, Tensor]:
    """The first place whose cumulative weight is above this share of the whole, [R, 1].

    And how far into the weight of that place it is, as a share of it: in [0, 1) again. The place
    always has a weight above 0.
    """
    mass_RK = weight_RK.cumsum(dim=-1, dtype=torch.float64)
    total_R1 = mass_RK[:, -1:]
    below_R1 = torch.nextafter(total_R1, torch.zeros_like(total_R1))
    sought_R1 = torch.minimum(share_R1 * total_R1, below_R1)
    place_R1 = torch.searchsorted(mass_RK, sought_R1, right=True)
    here_R1 = weight_RK.gather(1, place_R1).double()
    before_R1 = mass_RK.gather(1, place_R1) - here_R1
    return place_R1, ((sought_R1 - before_R1) / here_R1).clamp(0.0, 1.0)


def nucleus(logits_BV: Tensor, top_p: float) -> Tensor:
    """Logits with everything outside the smallest set of mass top_p at minus infinity."""
    if top_p >= 1:
        return logits_BV
    sorted_BV, order_BV = logits_BV.sort(dim=-1, descending=True)
    mass_BV = sorted_BV.softmax(dim=-1)
    # The mass before a token decides, so that the most likely one always stays.
    outside_BV = (mass_BV.cumsum(dim=-1) - mass_BV) >= top_p
    dropped_BV = torch.zeros_like(outside_BV).scatter(-1, order_BV, outside_BV)
    return logits_BV.masked_fill(dropped_BV, -torch.inf)


class RowSampler(LogitsProcessor):
    """Turns greedy decoding into sampling: `generate(do_sample=False, logits_processor=[…])`.

    num_tokens: how many may be drawn for each row. temperature and top_p shape the distribution
    that is sampled from; top_p 1 leaves it whole.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        num_tokens: int,
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> None:
        if temperature <= 0 or not 0 < top_p <= 1:
            raise ValueError(f"temperature must be > 0, top_p in (0, 1]: {temperature}, {top_p}")
        self.uniform_BT = uniforms(seeds, num_tokens)
        self.temperature = temperature
        self.top_p = top_p
        self._drawn = 0

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """scores [B, V] → 0 for the sample, minus infinity for every other token."""
        if len(scores) != len(self.uniform_BT):
            raise ValueError(f"{len(scores)} rows for {len(self.uniform_BT)} seeds")
        self.uniform_BT = self.uniform_BT.to(scores.device)
        logits_BV = nucleus(scores.float() / self.temperature, self.top_p)
        chosen_B, _, _ = draw(logits_BV, self.uniform_BT[:, self._drawn])
        self._drawn += 1
        return torch.full_like(logits_BV, -torch.inf).scatter(1, chosen_B[:, None], 0.0)
