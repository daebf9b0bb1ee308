"""Responses token by token when they are sampled, all tokens at once when they are scored.

Both ways shape the logits with the same function and give the log-probability of every token under
the distribution it is drawn from, the first and the ending one like all others.

Legend: B rows, R rows that are still being written, T tokens of the longest response, N tokens of
all responses, V vocabulary, D width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from policies.generating.models import AnyReading
from policies.generating.value_head import ValueHead
from policies.reading.cached_reading import Piece
from policies.reading.frozen_head import frozen_head_log_probs, frozen_layer
from policies.reading.sampling import draw, nucleus, row_entropies, uniforms
from rewriting.runtime.language_models.log_probs import HEAD_CHUNK, target_log_probs


@dataclass(frozen=True, slots=True)
class SamplingDistribution:
    """How logits become the distribution that is sampled from."""

    temperature: float = 1.0
    top_p: float = 1.0

    def __call__(self, logits_NV: Tensor) -> Tensor:
        """[N, V] in float32."""
        logits_NV = logits_NV.float()
        if self.temperature != 1:
            logits_NV = logits_NV / self.temperature
        return nucleus(logits_NV, self.top_p)


@dataclass(frozen=True, slots=True)
class Sampled:
    """B sampled responses; the tensors are as long as each response and on the CPU."""

    tokens: list[list[int]]
    """With the ending token, if it came."""
    log_probs: list[Tensor]
    values: list[Tensor]
    """What the value head expected before each token."""
    entropies: list[Tensor]
    """Of the distribution of each token, in nats."""
    finished: list[bool]
    """Whether the ending token came before `max_new_tokens`."""

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Row by row; `of` puts them together again."""
        yield from zip(
            self.tokens, self.log_probs, self.values, self.entropies, self.finished, strict=True
        )

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> Sampled:
        columns = [list(column) for column in zip(*rows, strict=True)]
        return cls(*columns) if columns else cls([], [], [], [], [])


@dataclass(frozen=True, slots=True)
class TokenLogProbs:
    """Log-probabilities and values of the tokens of given responses, padded with 0."""

    log_prob_BT: Tensor
    mask_BT: Tensor
    value_BT: Tensor | None = None


@torch.no_grad()
def write(
    reading: AnyReading,
    leads: Sequence[Sequence[int]],
    seeds: Sequence[int],
    *,
    end: Sequence[int],
    max_new_tokens: int,
    shape: SamplingDistribution,
    value_head: ValueHead | None = None,
) -> Sampled:
    """Sample a response for each row. Rows that have ended leave the batch, a few at a time."""
    uniform_BT = uniforms(seeds, max_new_tokens, reading.model.device)
    tokens: list[list[int]] = [[] for _ in leads]
    figures: list[list[Tensor]] = [[] for _ in leads]  # [3]: log-probability, value, entropy
    rows, pieces = list(range(len(leads))), [list(lead) for lead in leads]
    open_rows = set(rows)
    for step in range(max_new_tokens):
        piece = reading.read(pieces)
        places = [len(tokens_read) - 1 for tokens_read in pieces]
        hidden_RD = piece.hidden_BSD[list(range(len(rows))), places]
        logits_RV = shape(piece.logits(range(len(rows)), places))
        chosen_R, log_prob_R, prob_RV = draw(logits_RV, uniform_BT[rows, step])
        entropy_R = row_entropies(logits_RV, chosen_R, log_prob_R, prob_RV)
        value_R = torch.zeros_like(log_prob_R) if value_head is None else value_head(hidden_RD)
        figures_R3 = torch.stack([log_prob_R, value_R, entropy_R], dim=-1).cpu()
        for row, token, figure in zip(rows, chosen_R.tolist(), figures_R3, strict=True):
            if row in open_rows:
                tokens[row].append(token)
                figures[row].append(figure)
                if token in end:
                    open_rows.discard(row)
        if not open_rows:
            break
        # Dropping a row copies the cache of all others: it pays when there are several to drop.
        if len(open_rows) <= 0.75 * len(rows):
            kept = [place for place, row in enumerate(rows) if row in open_rows]
            reading.select(kept)
            rows = [rows[place] for place in kept]
        pieces = [tokens[row][-1:] for row in rows]
    columns = [torch.stack(found).unbind(dim=-1) for found in figures]
    log_probs, values, entropies = (list(column) for column in zip(*columns, strict=True))
    finished = [row not in open_rows for row in range(len(leads))]
    return Sampled(tokens, log_probs, values, entropies, finished)


def score(
    reading: AnyReading,
    leads: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    *,
    shape: SamplingDistribution,
    value_head: ValueHead | None = None,
) -> TokenLogProbs:
    """Teacher forcing: log π of every token of the given responses. Differentiable.

    No response is empty. Logits exist only where a token is predicted, in chunks of the vocabulary.
    """
    piece = reading.read(
        [[*lead, *response[:-1]] for lead, response in zip(leads, responses, strict=True)]
    )
    counts = [len(response) for response in responses]
    rows = [row for row, count in enumerate(counts) for _ in range(count)]
    columns = [len(lead) - 1 + k for lead, n in zip(leads, counts, strict=True) for k in range(n)]
    targets = [token for response in responses for token in response]
    log_prob_N = _log_probs_at(piece, rows, columns, targets, shape)
    mask_BT = padded_rows(torch.ones_like(log_prob_N, dtype=torch.bool), counts)
    value_BT = None
    if value_head is not None:
        value_BT = padded_rows(value_head(piece.hidden_BSD[rows, columns]), counts)
    return TokenLogProbs(padded_rows(log_prob_N, counts), mask_BT, value_BT)


def _log_probs_at(
    piece: Piece,
    rows: Sequence[int],
    columns: Sequence[int],
    targets: Sequence[int],
    shape: SamplingDistribution,
) -> Tensor:
    target_N = torch.tensor(list(targets), device=piece.hidden_BSD.device)
    if (layer := frozen_layer(piece.head)) is not None:
        hidden_ND = piece.hidden_BSD[list(rows), list(columns)]
        return frozen_head_log_probs(hidden_ND, target_N, *layer, shape)
    found = []
    for start in range(0, len(rows), HEAD_CHUNK):
        end = start + HEAD_CHUNK
        logits_NV = shape(piece.logits(rows[start:end], columns[start:end]))
        found.append(target_log_probs(logits_NV, target_N[start:end]))
    return torch.cat(found)


def padded_rows(flat_N: Tensor, counts: Sequence[int]) -> Tensor:
    """[N] → [B, T], row after row, filled up with 0."""
    return pad_sequence(list(flat_N.split(list(counts))), batch_first=True)
