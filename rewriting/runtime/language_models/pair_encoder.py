"""An encoder that reads sentences together with the post they answer.

    encode = PairEncoder("mpnet-base", rank=16, max_tokens=192, layers=9)
    vectors_ND = encode([("Rex died today.", ["I miss him with you.", "Who is Rex?"])])

Two vectors of two texts say what each is about, and hardly what one says of the other: "What did
you do after you died?" is near a post about a death. Here every token of a sentence attends to the
whole post. The tokens of the post attend to the post alone, so all sentences under a post share one
reading of it: twelve sentences cost about a quarter of twelve pairs, and none sees the others.

A causal language model serves too: each token sees what comes before it, so the vector of a
sentence is the state of its last token, which has seen the post and the whole sentence.

Legend: B rows (posts), T tokens, H attention heads, N sentences of all rows, D width of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from rewriting.errors import UserError
from rewriting.runtime.batches import batches_by_length, max_padding
from rewriting.runtime.language_models.tuned_encoder import (
    CPU_BATCH_TOKENS,
    GPU_BATCH_TOKENS,
    TunedEncoder,
)

Row = tuple[str, Sequence[str]]
"""A post, and the sentences that are read under it."""

PADDING: Final = -1  # the part that padding belongs to; 0 is the post, then the sentences
MAX_SENTENCE_TOKENS: Final = 64


@dataclass(frozen=True, slots=True)
class Packed:
    """A post and its sentences as one sequence: for each token its id, part and position.

    A sentence's positions go on where the post ends, as if it were the only one.
    """

    ids: tuple[int, ...]
    parts: tuple[int, ...]
    positions: tuple[int, ...]


class PairEncoder(TunedEncoder):
    """A pretrained encoder with LoRA: rows of a post and its sentences to a vector per sentence.

    A vector is the mean over the tokens of its sentence, of a causal model the last of them.
    max_tokens: a longer post is cut.
    """

    def forward(self, rows: Sequence[Row]) -> Tensor:  # type: ignore[override]
        """[N, D]: the sentences of the first row, then those of the second, and so on."""
        packed = [self.pack(post, sentences) for post, sentences in rows]
        device = next(self.encoder.parameters()).device
        most = CPU_BATCH_TOKENS if device.type == "cpu" else GPU_BATCH_TOKENS
        pool = lasts if self.causal else means
        vectors: dict[int, Tensor] = {}
        for batch in batches_by_length([len(row.ids) for row in packed], most, max_padding(device)):
            ids_BT, parts_BT, positions_BT = (
                padded([getattr(packed[i], name) for i in batch], value).to(device)
                for name, value in (("ids", 0), ("parts", PADDING), ("positions", 0))
            )
            states_BTD = self._states(ids_BT, positions_BT, visible(parts_BT))
            for place, row in enumerate(batch):
                vectors[row] = pool(states_BTD[place], parts_BT[place], len(rows[row][1]))
        found = [vectors[row] for row in range(len(rows))]
        return torch.cat(found) if found else torch.zeros(0, self.width, device=device)

    def pack(self, post: str, sentences: Sequence[str]) -> Packed:
        """`<s> post </s>`, then `</s> sentence </s>` for each sentence, as pairs are written."""
        tokenizer: Any = self.tokenizer
        end = first_known(tokenizer.sep_token_id, tokenizer.eos_token_id)
        start = first_known(tokenizer.cls_token_id, tokenizer.bos_token_id, end)
        first = [start, *self._plain(post, self.max_tokens), end]
        ids, parts = list(first), [0] * len(first)
        positions = list(range(len(first)))
        for number, sentence in enumerate(sentences, start=1):
            own = [end, *self._plain(sentence, MAX_SENTENCE_TOKENS), end]
            ids += own
            parts += [number] * len(own)
            positions += range(len(first), len(first) + len(own))
        return Packed(tuple(ids), tuple(parts), tuple(positions))

    def _plain(self, text: str, most: int) -> list[int]:
        found: Any = self.tokenizer(
            text, add_special_tokens=False, truncation=True, max_length=most
        )
        ids: list[int] = found["input_ids"]
        return ids

    def _states(self, ids_BT: Tensor, positions_BT: Tensor, visible_BTT: Tensor) -> Tensor:
        """[B, T, D]: the last hidden states, where a token sees only what is visible to it."""
        encoder: Any = self.encoder
        if self.causal:
            seen_BTT = visible_BTT & torch.ones_like(visible_BTT[0]).tril()
            # Added to the logits: not every kind of attention understands True and False.
            mask_BTT = torch.zeros(seen_BTT.shape, device=ids_BT.device)
            mask_BTT = mask_BTT.masked_fill(~seen_BTT, torch.finfo(mask_BTT.dtype).min)
            found = encoder(
                input_ids=ids_BT,
                attention_mask=mask_BTT[:, None],
                position_ids=positions_BT,
                use_cache=False,
            )
            last_BTD: Tensor = found.last_hidden_state
            return last_BTD
        stack: Any = encoder.encoder
        if not hasattr(stack, "relative_attention_bias"):  # BERT and its kin
            found = encoder(
                input_ids=ids_BT, attention_mask=visible_BTT[:, None], position_ids=positions_BT
            )
            states_BTD: Tensor = found.last_hidden_state
            return states_BTD
        # MPNet counts distances along the sequence; here they are those of the positions.
        offset = encoder.embeddings.padding_idx + 1
        states_BTD = encoder.embeddings(input_ids=ids_BT, position_ids=positions_BT + offset)
        distances_BTT = positions_BT[:, None, :] - positions_BT[:, :, None]
        buckets_BTT = stack.relative_position_bucket(distances_BTT)
        bias_BHTT = stack.relative_attention_bias(buckets_BTT).permute(0, 3, 1, 2)
        hidden = torch.finfo(bias_BHTT.dtype).min
        bias_BHTT = bias_BHTT.masked_fill(~visible_BTT[:, None], hidden)
        for layer in stack.layer:
            states_BTD = layer(states_BTD, None, bias_BHTT)[0]
        return states_BTD


def first_known(*tokens: int | None) -> int:
    """The first of some special tokens that the tokenizer has."""
    for token in tokens:
        if token is not None:
            return token
    raise UserError("the encoder's tokenizer has no token that ends a text.")


def visible(parts_BT: Tensor) -> Tensor:
    """[B, T, T]: whether a token sees another: the post is seen by all, a sentence by itself."""
    keys_B1T, queries_BT1 = parts_BT[:, None, :], parts_BT[:, :, None]
    return ((keys_B1T == 0) | (keys_B1T == queries_BT1)) & (keys_B1T != PADDING)


def means(states_TD: Tensor, parts_T: Tensor, count: int) -> Tensor:
    """[count, D]: the mean state of each sentence, the parts 1 to count."""
    own_NT = parts_T[None, :] == torch.arange(1, count + 1, device=parts_T.device)[:, None]
    weights_NT = own_NT.to(states_TD.dtype)
    return weights_NT @ states_TD / weights_NT.sum(-1, keepdim=True)


def lasts(states_TD: Tensor, parts_T: Tensor, count: int) -> Tensor:
    """[count, D]: the state of the last token of each sentence, the parts 1 to count."""
    own_NT = parts_T[None, :] == torch.arange(1, count + 1, device=parts_T.device)[:, None]
    places_T = torch.arange(1, len(parts_T) + 1, device=parts_T.device)
    return states_TD[(own_NT * places_T).argmax(-1)]


def padded(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """[B, T]"""
    return nn.utils.rnn.pad_sequence(
        [torch.tensor(row) for row in rows], batch_first=True, padding_value=value
    )
