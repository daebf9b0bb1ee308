"""What the EPITOME identifier learns from: labelled pairs as tokens, and its loss.

Loss: λ_EI · cross-entropy of the gate + λ_RE · cross-entropy of the rationale tokens (arXiv
2009.08441, section 5), a mean over mechanisms. The paper's first part is over three levels; here
the strength is fitted afterwards (strength.py). Added: weights for the rarer side of the gate, and
tokens hidden at random, because a few hundred rows are otherwise learned by heart.

Dimensions: N examples, B pairs of a batch, T response tokens, M mechanisms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.utils.rnn import pad_sequence

from rewards.identifiers.epitome.identifier import EpitomeIdentifier, tokenise
from rewards.identifiers.rationales import align_all, label_tokens
from rewriting.exchange import MECHANISMS, Exchange


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled pair as tokens: its levels [M], and 1 for each response token that carries one."""

    seeker_ids: Tensor
    response_ids: Tensor
    levels_M: Tensor
    marks_MT: Tensor


def make_examples(
    exchanges: Sequence[Exchange], tokenizer: Any, max_seeker_tokens: int, max_response_tokens: int
) -> list[Example]:
    """Tokenise exchanges that are labelled with all three mechanisms."""
    examples = []
    for exchange in exchanges:
        seeker_ids, _ = tokenise(tokenizer, exchange.seeker_post, max_seeker_tokens)
        response_ids, offsets = tokenise(tokenizer, exchange.response_post, max_response_tokens)
        labels = [exchange.labels[mechanism] for mechanism in MECHANISMS]
        spans = [align_all(label.rationales, exchange.response_post) for label in labels]
        marks = [label_tokens(offsets, one) for one in spans]
        examples.append(
            Example(
                torch.tensor(seeker_ids),
                torch.tensor(response_ids),
                torch.tensor([label.level for label in labels]),
                torch.tensor(marks),
            )
        )
    return examples


def gate_weights(examples: Sequence[Example], power: float) -> Tensor:
    """Weights [M, 2] of none and some, frequency^-power, with mean 1 over the examples.

    Power 0 leaves them as they come; 1 makes both sides weigh alike.
    """
    some_NM = torch.stack([example.levels_M > 0 for example in examples]).float()
    share_M2 = torch.stack([1 - some_NM.mean(0), some_NM.mean(0)], dim=1)
    weights_M2 = share_M2.clamp(min=1 / len(examples)) ** -power
    return weights_M2 / (weights_M2 * share_M2).sum(1, keepdim=True)


class IdentifierLoss:
    """Examples → the sum of their losses, and their number: what supervised.py takes.

    hidden_share: how many of the response's tokens are hidden from the encoder in training.
    """

    def __init__(
        self,
        identifier: EpitomeIdentifier,
        weights_M2: Tensor,
        *,
        level_weight: float = 1.0,
        rationale_weight: float = 0.5,
        hidden_share: float = 0.0,
    ) -> None:
        self.identifier = identifier
        self.weights_M2 = weights_M2
        self.level_weight = level_weight
        self.rationale_weight = rationale_weight
        self.hidden_share = hidden_share

    def __call__(self, examples: Sequence[Example]) -> tuple[Tensor, float]:
        device = next(self.identifier.networks.parameters()).device
        seeker_ids, seeker_mask = batch([e.seeker_ids for e in examples], device)
        response_ids, response_mask = batch([e.response_ids for e in examples], device)
        if self.hidden_share and self.identifier.networks.training:
            response_ids = self._hide(response_ids, response_mask)
        outputs = [
            network(seeker_ids, seeker_mask, response_ids, response_mask)
            for network in self.identifier.networks
        ]
        losses_B = pair_losses(
            torch.cat([output.gate_logits for output in outputs], dim=1),
            torch.cat([output.rationale_logits for output in outputs], dim=1),
            response_mask,
            torch.stack([e.levels_M for e in examples]).to(device),
            pad_sequence([e.marks_MT.T for e in examples], batch_first=True).mT.to(device),
            self.weights_M2.to(device),
            self.level_weight,
            self.rationale_weight,
        )
        return losses_B.sum(), float(len(examples))

    def _hide(self, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """A random share of the tokens, never the first, replaced by the mask or unknown token."""
        tokenizer = self.identifier.tokenizer
        blank = tokenizer.mask_token_id
        if blank is None:
            blank = tokenizer.unk_token_id
        hidden_BT = (torch.rand(ids_BT.shape) < self.hidden_share).to(ids_BT.device)
        hidden_BT &= mask_BT.bool()
        hidden_BT[:, 0] = False
        return ids_BT.masked_fill(hidden_BT, blank)


def batch(ids: Sequence[Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of different lengths as one tensor, and its mask."""
    ones = [torch.ones_like(row) for row in ids]
    padded = pad_sequence(list(ids), batch_first=True), pad_sequence(ones, batch_first=True)
    return padded[0].to(device), padded[1].to(device)


def pair_losses(
    gate_logits_BM: Tensor,
    rationale_logits_BMT: Tensor,
    mask_BT: Tensor,
    levels_BM: Tensor,
    marks_BMT: Tensor,
    weights_M2: Tensor,
    level_weight: float,
    rationale_weight: float,
) -> Tensor:
    """λ_EI · CE + λ_RE · CE of tokens, for each pair [B]; means over mechanisms and tokens."""
    some_BM = (levels_BM > 0).float()
    gate_BM = binary_cross_entropy_with_logits(gate_logits_BM, some_BM, reduction="none")
    gate_BM = gate_BM * torch.where(levels_BM > 0, weights_M2[:, 1], weights_M2[:, 0])
    token_BMT = binary_cross_entropy_with_logits(
        rationale_logits_BMT, marks_BMT.float(), reduction="none"
    )
    mask_B1T = mask_BT[:, None, :]
    token_BM = (token_BMT * mask_B1T).sum(-1) / mask_B1T.sum(-1)
    return level_weight * gate_BM.mean(1) + rationale_weight * token_BM.mean(1)
