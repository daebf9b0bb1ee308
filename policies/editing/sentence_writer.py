"""Writing one sentence with a language model that has read a prompt, and how likely it was.

Both ways through the model stand here side by side: token by token when a sentence is sampled, all
tokens at once when a given sentence is scored. They shape the logits with the same function.

Legend: R rows, N tokens of all rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from policies.reading.cached_reading import Piece, Reading
from policies.reading.sampling import draw, nucleus, uniforms
from rewriting.runtime.language_models.log_probs import HEAD_CHUNK, target_log_probs

Written = tuple[list[int], list[Tensor]]  # tokens, and the log-probability of each


class SentenceWriter:
    """A sentence goes up to its first ending token, or to `max_new_tokens`.

    endings_V: True for the tokens that end a sentence. None of them may be the first: they have no
    probability there, and the others share all of it.
    """

    def __init__(
        self,
        endings_V: Tensor,
        *,
        max_new_tokens: int = 40,
        temperature: float = 1.0,
        top_p: float = 1.0,
    ) -> None:
        self.endings_V = endings_V
        self.max_new_tokens = max_new_tokens
        self.temperature = temperature
        self.top_p = top_p

    def shaped(self, logits_NV: Tensor, banned_V: Tensor | None = None) -> Tensor:
        """The logits of the distribution that is sampled from, in float32."""
        logits_NV = logits_NV.float()
        if banned_V is not None:
            logits_NV = logits_NV.masked_fill(banned_V, -torch.inf)
        if self.temperature != 1:
            logits_NV = logits_NV / self.temperature
        return nucleus(logits_NV, self.top_p)

    def write(
        self, reading: Reading, leads: Sequence[Sequence[int]], seeds: Sequence[int]
    ) -> list[Written]:
        """Sample a sentence for each row; a row whose sentence has ended leaves the batch.

        leads: what each row reads before it writes.
        """
        uniform_RT = uniforms(seeds, self.max_new_tokens, self.endings_V.device)
        written: list[Written] = [([], []) for _ in leads]
        active, pieces = list(range(len(leads))), [list(lead) for lead in leads]
        banned_V: Tensor | None = self.endings_V
        for step in range(self.max_new_tokens):
            piece = reading.read(pieces)
            last = [len(tokens) - 1 for tokens in pieces]
            logits_RV = self.shaped(piece.logits(range(len(pieces)), last), banned_V)
            banned_V = None
            chosen_R, log_probs_R, _ = draw(logits_RV, uniform_RT[active, step])
            for row, token, log_prob in zip(active, chosen_R.tolist(), log_probs_R, strict=True):
                written[row][0].append(token)
                written[row][1].append(log_prob)
            going_on = (~self.endings_V[chosen_R]).nonzero()[:, 0].tolist()
            if not going_on:
                break
            reading.select(going_on)
            active = [active[place] for place in going_on]
            pieces = [written[row][0][-1:] for row in active]
        return written

    def log_probs(
        self,
        reading: Reading,
        leads: Sequence[Sequence[int]],
        sentences: Sequence[Sequence[int]],
    ) -> list[Tensor]:
        """R tensors: log π of every token of the given sentences. Differentiable.

        No sentence is empty. The first and the ending token count like all others.
        """
        piece = reading.read(
            [[*lead, *tokens[:-1]] for lead, tokens in zip(leads, sentences, strict=True)]
        )
        first = [(row, len(lead) - 1) for row, lead in enumerate(leads)]
        later = [
            (row, column + step)
            for (row, column), tokens in zip(first, sentences, strict=True)
            for step in range(1, len(tokens))
        ]
        first_R = self._at(piece, first, [tokens[0] for tokens in sentences], self.endings_V)
        later_N = self._at(piece, later, [token for tokens in sentences for token in tokens[1:]])
        rows = later_N.split([len(tokens) - 1 for tokens in sentences])
        return [torch.cat([a, b]) for a, b in zip(first_R.split(1), rows, strict=True)]

    def _at(
        self,
        piece: Piece,
        places: Sequence[tuple[int, int]],
        targets: Sequence[int],
        banned_V: Tensor | None = None,
    ) -> Tensor:
        """[N], log π of the target after each place; logits over the vocabulary in chunks."""
        found = [piece.hidden_BSD.new_zeros(0, dtype=torch.float32)]
        for start in range(0, len(places), HEAD_CHUNK):
            rows, columns = zip(*places[start : start + HEAD_CHUNK], strict=True)
            logits_NV = self.shaped(piece.logits(rows, columns), banned_V)
            target_N = torch.tensor(targets[start : start + HEAD_CHUNK], device=logits_NV.device)
            found.append(target_log_probs(logits_NV, target_N))
        return torch.cat(found)
