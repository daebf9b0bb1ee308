"""Domain-adaptive pre-training: the encoder first fills gaps in unlabelled posts of the domain.

EPITOME (arXiv 2009.08441) pre-trains both encoders so before it fine-tunes them. Of an encoder
that came without a language-model head, the embeddings serve as output layer, behind a small new
transform that is thrown away afterwards.

Dimensions: B texts, T tokens, K hidden tokens, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from rewards.identifiers.epitome.identifier import tokenise
from rewriting.errors import UserError
from rewriting.exchange import Exchange


class MaskedLanguageModel(nn.Module):
    """An encoder that is being adapted, and the transform before its embeddings.

    Called with texts as ids, it gives what supervised.py takes: the sum of the losses over
    hidden tokens, and how many those are.
    """

    def __init__(self, encoder: Any, tokenizer: Any, hidden_share: float = 0.15) -> None:
        super().__init__()
        if tokenizer.mask_token_id is None:
            raise UserError(
                "this encoder's tokenizer has no mask token, which masked-language pre-training "
                "needs: leave adapt_data out, or take another encoder."
            )
        size = encoder.config.hidden_size
        self.encoder = encoder
        self.transform = nn.Sequential(nn.Linear(size, size), nn.GELU(), nn.LayerNorm(size))
        self.mask_id = tokenizer.mask_token_id
        self.hidden_share = hidden_share

    def forward(self, rows: Sequence[Tensor]) -> tuple[Tensor, float]:
        table_VD = self.encoder.get_input_embeddings().weight.detach()
        ids_BT = pad_sequence(list(rows), batch_first=True).to(table_VD.device)
        ones = [torch.ones_like(row) for row in rows]
        mask_BT = pad_sequence(ones, batch_first=True).to(table_VD.device)
        hidden_BT = self._chosen(mask_BT)
        states_BTD = self.encoder(
            input_ids=ids_BT.masked_fill(hidden_BT, self.mask_id), attention_mask=mask_BT
        ).last_hidden_state
        logits_KV = self.transform(states_BTD[hidden_BT]) @ table_VD.T
        loss = nn.functional.cross_entropy(logits_KV, ids_BT[hidden_BT], reduction="sum")
        return loss, float(hidden_BT.sum())

    def _chosen(self, mask_BT: Tensor) -> Tensor:
        """Which tokens to hide: a random share, and in every text its second at the least."""
        generator = None if self.training else torch.Generator().manual_seed(0)
        hidden_BT = torch.rand(mask_BT.shape, generator=generator) < self.hidden_share
        hidden_BT[:, 1:2] = True
        return hidden_BT.to(mask_BT.device) & mask_BT.bool()


def texts_to_adapt_on(
    exchanges: Sequence[Exchange], tokenizer: Any, max_tokens: int
) -> list[Tensor]:
    """Every different post as ids, those of one token left out."""
    posts = [post for e in exchanges for post in (e.seeker_post, e.response_post)]
    rows = [torch.tensor(tokenise(tokenizer, post, max_tokens)[0]) for post in dict.fromkeys(posts)]
    return [row for row in rows if len(row) > 1]


def copy_adapted(source: nn.Module, target: nn.Module) -> None:
    """Give another encoder of the same kind what was learnt: the parameters that are trained."""
    learnt = {name: p for name, p in source.named_parameters() if p.requires_grad}
    with torch.no_grad():
        for name, parameter in target.named_parameters():
            if name in learnt:
                parameter.copy_(learnt[name])
