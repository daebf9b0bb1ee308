"""Where to edit, and which sentence to say there, from the vectors of sentences read under a post.

Each sentence of the reply, and each one there is to choose from, has a vector: what an encoder says
of it under the post. A linear reading of the vector comes with the encoder: the log-probabilities
that the sentence makes sense there, that it is true of this person, and that it hurts nobody. At
first the policy goes by these alone.

The two choices of PARTNER (arXiv 2101.07714) are scored by small heads: a score for each sentence
at each kind of place, and a score for each place, which knows how good the best sentence there
is. All places and all sentences are scored at once, so that the policy's distribution is known
exactly.

Legend: N sentences of the span, K sentences to choose from, D width of a vector, L kinds of places,
P = 2N + 2 positions, V verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, normalize

from rewriting.edits import num_positions

FRONT, MIDDLE, END, REPLACE = range(4)
PLACES: Final = 4
KNOWN: Final = 3
"""Plain numbers beside the vectors: the cosine of the posts, the turn, the length of the span."""
VERDICTS: Final = 3
"""Makes sense, is true, hurts nobody."""
BELIEF: Final = 3.0
"""How much a nat of a verdict counts at first: enough to make a wrong sentence rare."""


class ChoosingHeads(nn.Module):
    """[P] and [K, L]: the scores of a state, for where to edit and what to say."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.read = nn.Linear(width, VERDICTS)
        self.read.requires_grad_(False)
        self.norm = nn.LayerNorm(width)
        self.say = _mlp(2 * width + VERDICTS + KNOWN, hidden, PLACES)
        self.insert = _mlp(2 * width + KNOWN, hidden, 1)
        self.replace = _mlp(2 * width + VERDICTS + KNOWN, hidden, 1)
        self.keep = _mlp(width + VERDICTS + KNOWN, hidden, 1)
        self.belief = nn.Parameter(torch.full((PLACES, VERDICTS), BELIEF))
        self.trust = nn.Parameter(torch.ones(PLACES))
        """How much the best sentence for a kind of place speaks for it."""

    def forward(
        self, reply_ND: Tensor, choices_KD: Tensor, cosines_K: Tensor, turn: int
    ) -> tuple[Tensor, Tensor]:
        """Logits of the positions, in the order of rewriting/edits.py, and of the sentences at
        each kind of place."""
        reply_NV, choices_KV = self.verdicts(reply_ND), self.verdicts(choices_KD)
        reply_ND, choices_KD = self.norm(reply_ND), self.norm(choices_KD)
        count = len(reply_ND)
        mean_D = reply_ND.mean(0) if count else choices_KD.new_zeros(choices_KD.shape[-1])
        told = choices_KD.new_tensor([0.0, turn / 2, count / 4])
        told_K = told.repeat(len(choices_KD), 1)
        told_K[:, 0] = cosines_K
        mean_KD = mean_D.expand(len(choices_KD), -1)
        scores_KL = self.say(torch.cat([choices_KD, mean_KD, choices_KV, told_K], dim=-1))
        scores_KL = scores_KL + choices_KV @ self.belief.T
        if len(choices_KD):
            worth_L = self.trust * scores_KL.amax(0)  # however many there are to choose from
        else:
            worth_L = scores_KL.new_full((PLACES,), -torch.inf)  # nothing to say: keep
        return self._positions(reply_ND, reply_NV, mean_D, told, worth_L), scores_KL

    def verdicts(self, vectors_ND: Tensor) -> Tensor:
        """[N, V]: log-probabilities. Unit vectors are stretched, as the encoder's own head does."""
        stretched_ND = normalize(vectors_ND, dim=-1) * vectors_ND.shape[-1] ** 0.5
        sense_N, true_N, hurts_N = self.read(stretched_ND).unbind(-1)
        return torch.stack([logsigmoid(sense_N), logsigmoid(true_N), logsigmoid(-hurts_N)], dim=-1)

    def _positions(
        self, reply_ND: Tensor, reply_NV: Tensor, mean_D: Tensor, told: Tensor, worth_L: Tensor
    ) -> Tensor:
        count, empty_1D = len(reply_ND), torch.zeros_like(mean_D)[None]
        before = torch.cat([empty_1D, reply_ND])  # of each of the N + 1 boundaries
        after = torch.cat([reply_ND, empty_1D])
        insert = self.insert(torch.cat([before, after, told.repeat(count + 1, 1)], dim=-1))[:, 0]
        parts = (reply_ND, mean_D.expand(count, -1), reply_NV, told.repeat(count, 1))
        replace = self.replace(torch.cat(parts, dim=-1))[:, 0]
        worst_V = reply_NV.amin(0) if count else reply_NV.new_zeros(VERDICTS)
        keep = self.keep(torch.cat([mean_D, worst_V, told]))
        kinds = torch.tensor([place_of(p, count) for p in range(num_positions(count) - 1)])
        worth = worth_L[kinds.to(worth_L.device)]
        return torch.cat([torch.cat([insert, replace]) + worth, keep])


def place_of(position: int, num_sentences: int) -> int:
    """The kind of place of a position that is not keep."""
    if position > num_sentences:
        return REPLACE
    if position == 0:
        return FRONT
    return END if position == num_sentences else MIDDLE


def entropies(logits: Sequence[Tensor]) -> Tensor:
    """[B]: of softmax(logits) of each row, in nats. What cannot be drawn adds nothing."""
    found = []
    for row in logits:
        log_probs = row.log_softmax(0)
        found.append(-(log_probs.exp() * log_probs.masked_fill(log_probs.isinf(), 0.0)).sum())
    return torch.stack(found) if found else torch.zeros(0)


def _mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """A hidden layer, and an output that begins at 0."""
    last = nn.Linear(hidden, outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), last)
