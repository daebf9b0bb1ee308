"""Where to edit: a pointer over the boundaries of a span's sentences (after arXiv 1506.03134).

A query from the prompt's last token, which has seen everything, is compared with one key per
position: to insert before a sentence, from the boundary before it and from its own end; to replace
it, from its end; to keep, a key of its own. So one head serves spans of any number of sentences.

Legend: B rows, T tokens, D width of the model, K width of the keys, N sentences of the longest
span, P = 2N + 2 positions of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from policies.editing.prompt import Prompt
from policies.reading.sampling import draw, uniforms
from rewriting.edits import num_positions


class PositionHead(nn.Module):
    """Logits over the edit positions, from the hidden states of a prompt.

    In the precision of its weights: float32, unless a sharding launcher gathers them in another.
    """

    def __init__(self, hidden_size: int, width: int = 128) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden_size)
        self.query = nn.Linear(hidden_size, width)
        self.insert = nn.Linear(2 * hidden_size, width)
        self.replace = nn.Linear(hidden_size, width)
        self.keep = nn.Parameter(torch.zeros(width))
        self.bias = nn.Parameter(torch.zeros(3))  # of insert, replace, keep

    def forward(self, hidden_BTD: Tensor, prompts: Sequence[Prompt]) -> Tensor:
        """[B, P] in the order of rewriting/edits.py; minus infinity past a row's last position."""
        with torch.autocast(hidden_BTD.device.type, enabled=False):
            query_BK = self.query(
                self._at(hidden_BTD, [[len(p.tokens) - 1] for p in prompts])[:, 0]
            )
            before_BND = self._at(hidden_BTD, [p.boundaries for p in prompts])
            # The last boundary has no sentence behind it and stands in for one.
            after_BND = self._at(hidden_BTD, [(*p.ends, p.boundaries[-1]) for p in prompts])
            end_BND = self._at(hidden_BTD, [p.ends for p in prompts])
            insert_BNK = self.insert(torch.cat([before_BND, after_BND], dim=-1))
            replace_BNK = self.replace(end_BND)
            keep_BNK = self.keep.expand(len(prompts), 1, -1)
            scale = query_BK.shape[-1] ** -0.5
            insert, replace, keep = (
                torch.einsum("bk,bnk->bn", query_BK, key_BNK) * scale + bias
                for key_BNK, bias in zip(
                    (insert_BNK, replace_BNK, keep_BNK), self.bias, strict=True
                )
            )
            return in_order(insert, replace, keep, [len(prompt.ends) for prompt in prompts])

    def _at(self, hidden_BTD: Tensor, places: Sequence[Sequence[int]]) -> Tensor:
        """The normalised hidden states at some places of each row, the rows filled up with 0."""
        width = max(map(len, places))
        filled = [[*row, *[0] * (width - len(row))] for row in places]
        index_BN = torch.tensor(filled, dtype=torch.long, device=hidden_BTD.device)
        rows_B1 = torch.arange(len(places), device=hidden_BTD.device)[:, None]
        chosen: Tensor = self.norm(hidden_BTD[rows_B1, index_BN].to(self.norm.weight.dtype))
        return chosen


def in_order(
    insert_BN1: Tensor, replace_BN: Tensor, keep_B1: Tensor, num_sentences: Sequence[int]
) -> Tensor:
    """Logits by operation → [B, P], each row in its own order of positions.

    insert [B, N + 1], replace [B, N], keep [B, 1]. A row of n < N sentences has 2n + 2 positions;
    what is left of its places is minus infinity.
    """
    most = replace_BN.shape[1]
    index_BP = torch.zeros(len(num_sentences), num_positions(most), dtype=torch.long)
    unused_BP = torch.ones_like(index_BP, dtype=torch.bool)
    for row, n in enumerate(num_sentences):
        places = [*range(n + 1), *range(most + 1, most + 1 + n), 2 * most + 1]
        index_BP[row, : len(places)] = torch.tensor(places)
        unused_BP[row, : len(places)] = False
    together_BP = torch.cat([insert_BN1, replace_BN, keep_B1], dim=1)
    ordered_BP = together_BP.gather(1, index_BP.to(together_BP.device))
    return ordered_BP.masked_fill(unused_BP.to(together_BP.device), -torch.inf)


def entropy(logits_BP: Tensor) -> Tensor:
    """[B], of softmax(logits) in nats. A logit of minus infinity adds nothing, nor a gradient."""
    log_probs_BP = logits_BP.log_softmax(dim=-1)
    finite_BP = log_probs_BP.masked_fill(log_probs_BP.isinf(), 0.0)
    return -(log_probs_BP.exp() * finite_BP).sum(dim=-1)


def chosen_log_probs(logits_BP: Tensor, positions: Sequence[int]) -> Tensor:
    """[B]: log π of a position of each row."""
    chosen_B1 = torch.tensor([[position] for position in positions], device=logits_BP.device)
    return logits_BP.log_softmax(dim=-1).gather(1, chosen_B1)[:, 0]


def sample_positions(logits_BP: Tensor, seeds: Sequence[int]) -> list[int]:
    """A position for each row; those past a row's last one have no probability."""
    chosen_B, _, _ = draw(logits_BP, uniforms(seeds, 1, logits_BP.device)[:, 0])
    return chosen_B.tolist()
