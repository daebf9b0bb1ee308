"""The two kinds of language models behind a generator, with one face.

    encoded = model.encode(contexts)              # once per prompt
    reading = model.reading(encoded, prefix)      # as often as one likes
    piece = reading.read(encoded.leads)           # hidden states, logits

Of an encoder-decoder, all that the decoder takes from a context are the keys and values of its
cross-attention. No adapter touches the encoder or these two projections, so policy, reference
and every epoch share them. A causal model reads its context under the adapter, each time anew.

Legend: B rows, S tokens of a context or a piece, D width, L layers, H heads, K width of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch
from torch import Tensor

from policies.generating.prefix import Prefix
from policies.reading.cached_reading import Piece, Reading
from policies.reading.frozen_head import ScaledHead
from rewriting.errors import UserError
from rewriting.runtime.batches import batches_by_length
from rewriting.runtime.language_models.log_probs import has_plain_head, start_token
from rewriting.runtime.models.options import DEFAULT, ModelOptions

ENCODER_TOKENS: Final = 4096  # read at once, padding included


@dataclass(frozen=True, slots=True)
class Encoded:
    """Contexts, and what was computed of them that no adapter changes."""

    contexts: list[list[int]]
    leads: list[list[int]]
    """What the decoder reads before the response: a start token, or the context."""
    cross_L2BHSK: Tensor | None = None
    mask_BS: Tensor | None = None

    def __len__(self) -> int:
        return len(self.contexts)

    def select(self, rows: Sequence[int]) -> Encoded:
        """These rows, no wider than the longest of them; one may come several times."""
        contexts = [self.contexts[row] for row in rows]
        leads = [self.leads[row] for row in rows]
        if self.cross_L2BHSK is None or self.mask_BS is None:
            return Encoded(contexts, leads)
        index = torch.tensor(list(rows), device=self.mask_BS.device)
        width = max(map(len, contexts))
        cross = self.cross_L2BHSK[..., :width, :].index_select(2, index)
        return Encoded(contexts, leads, cross, self.mask_BS[index, :width])


class AnyReading(Protocol):
    """How far a decoder has read some rows."""

    model: Any

    def read(self, rows: Sequence[Sequence[int]]) -> Piece: ...
    def select(self, rows: Sequence[int]) -> None: ...


class AnyModel(Protocol):
    """A frozen language model that continues contexts."""

    model: Any
    tokenizer: Any
    is_seq2seq: bool
    hidden_size: int
    start: tuple[int, ...]
    end: tuple[int, ...]
    max_length: int
    """Of a context and a response together; 0 where there is no limit."""

    def encode(self, contexts: Sequence[Sequence[int]], *, at_once: bool = False) -> Encoded: ...
    def reading(self, encoded: Encoded, prefix: Prefix | None) -> AnyReading: ...
    def first_cache(self, tokens: Sequence[int]) -> list[tuple[Tensor, Tensor]]: ...


class Seq2SeqModel:
    """An encoder-decoder such as T5. Its contexts end with the end token, as T5's inputs do."""

    is_seq2seq = True
    start: tuple[int, ...] = ()
    max_length = 0

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model.requires_grad_(False).eval()
        self.tokenizer = tokenizer
        self.hidden_size = int(model.config.hidden_size)
        self.end: tuple[int, ...] = (int(tokenizer.eos_token_id),)
        self.scale = _output_scale(model)

    @torch.no_grad()
    def encode(self, contexts: Sequence[Sequence[int]], *, at_once: bool = False) -> Encoded:
        """at_once: all contexts in one batch, however long they are."""
        rows = [list(context) for context in contexts]
        width = max(map(len, rows))
        found: dict[int, Tensor] = {}
        most = len(rows) * width if at_once else ENCODER_TOKENS
        for batch in batches_by_length([len(row) for row in rows], most):
            cross = self._cross([rows[number] for number in batch])
            found |= dict(zip(batch, cross.unbind(2), strict=True))
        first = found[0]
        shape = (*first.shape[:2], len(rows), first.shape[2], width, first.shape[-1])
        cross_L2BHSK = first.new_zeros(shape)
        for number, cross_L2HSK in found.items():
            cross_L2BHSK[:, :, number, :, : cross_L2HSK.shape[-2]] = cross_L2HSK
        start = [int(self.model.config.decoder_start_token_id)]
        _, mask_BS = padded_ids(rows, self.model.device)
        return Encoded(rows, [start] * len(rows), cross_L2BHSK, mask_BS)

    def _cross(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """[L, 2, B, H, S, K], as the decoder itself makes them when it reads its first token."""
        from transformers import DynamicCache, EncoderDecoderCache

        ids_BS, mask_BS = padded_ids(rows, self.model.device)
        hidden_BSD = self.model.get_encoder()(input_ids=ids_BS, attention_mask=mask_BS)[0]
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        self.model.get_decoder()(
            input_ids=ids_BS[:, :1],
            encoder_hidden_states=hidden_BSD,
            encoder_attention_mask=mask_BS,
            past_key_values=cache,
            use_cache=True,
        )
        layers: Sequence[Any] = cache.cross_attention_cache.layers
        return torch.stack([torch.stack([layer.keys, layer.values]) for layer in layers])

    def reading(self, encoded: Encoded, prefix: Prefix | None) -> DecoderReading:
        return DecoderReading(self.model, encoded, prefix, self.scale)

    def first_cache(self, tokens: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """L times keys and values [H, P, K] of tokens that the decoder reads first."""
        reading = self.reading(self.encode([list(tokens)]), None)
        reading.read([tokens])
        layers: Sequence[Any] = reading.cache.self_attention_cache.layers
        return [(layer.keys[0], layer.values[0]) for layer in layers]


class DecoderReading:
    """How far the decoder of an encoder-decoder has read some rows.

    Relative positions count padding too, so only the last piece may have rows of different length.
    """

    def __init__(
        self, model: Any, encoded: Encoded, prefix: Prefix | None, scale: float = 1.0
    ) -> None:
        from transformers import DynamicCache, EncoderDecoderCache

        assert encoded.cross_L2BHSK is not None
        assert encoded.mask_BS is not None
        self.model = model
        self.head = ScaledHead(model.get_output_embeddings(), scale)
        self.mask_BS = encoded.mask_BS
        cross = encoded.cross_L2BHSK
        before = prefix.keys_values(len(encoded), cross.dtype) if prefix else None
        self.cache = EncoderDecoderCache(
            DynamicCache(before), DynamicCache([(keys, values) for keys, values in cross])
        )
        self._ragged = False

    def read(self, rows: Sequence[Sequence[int]]) -> Piece:
        """Read on: a piece for each row, not empty."""
        if self._ragged:
            raise ValueError("rows of different length can only be read last")
        self._ragged = len({len(row) for row in rows}) > 1
        ids_BT, _ = padded_ids(rows, self.model.device)
        # The keys and values are there; the decoder only looks at the shape of what they came from.
        shape = (*self.mask_BS.shape, self.model.config.hidden_size)
        stand_in_BSD = self.mask_BS.new_zeros((1, 1, 1), dtype=self.model.dtype).expand(shape)
        hidden_BTD = self.model.get_decoder()(
            input_ids=ids_BT,
            encoder_hidden_states=stand_in_BSD,
            encoder_attention_mask=self.mask_BS,
            past_key_values=self.cache,
            use_cache=True,
        )[0]
        return Piece(hidden_BTD, None, self.head)

    def select(self, rows: Sequence[int]) -> None:
        index = torch.tensor(list(rows), device=self.mask_BS.device)
        self.mask_BS = self.mask_BS[index]
        self.cache.batch_select_indices(index)


class CausalModel:
    """A causal language model, which reads its context as it reads its own words."""

    is_seq2seq = False

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model.requires_grad_(False).eval()
        self.tokenizer = tokenizer
        self.hidden_size = int(model.config.get_text_config().hidden_size)
        self.start: tuple[int, ...] = (start_token(tokenizer),)
        self.end: tuple[int, ...] = (int(tokenizer.eos_token_id),)
        self.max_length = int(getattr(model.config, "max_position_embeddings", 2048))
        self.plain_head = has_plain_head(model)

    def encode(self, contexts: Sequence[Sequence[int]], *, at_once: bool = False) -> Encoded:
        rows = [list(context) for context in contexts]
        return Encoded(rows, rows)

    def reading(self, encoded: Encoded, prefix: Prefix | None) -> Reading:
        reading = Reading(self.model, plain_head=self.plain_head)
        if prefix is not None:
            pairs = prefix.keys_values(len(encoded), self.model.dtype)
            for layer, (keys, values) in enumerate(pairs):
                reading.cache.update(keys, values, layer)
            shape = (len(encoded), pairs[0][0].shape[2])
            reading.mask_BT = torch.ones(shape, dtype=torch.long, device=self.model.device)
        return reading

    def first_cache(self, tokens: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        """L times keys and values [H, P, K] of tokens that the model reads first."""
        reading = Reading(self.model, plain_head=self.plain_head)
        reading.read([tokens])
        layers: Sequence[Any] = reading.cache.layers
        return [(layer.keys[0], layer.values[0]) for layer in layers]


def load_model(name: str, *, own: bool = False, options: ModelOptions = DEFAULT) -> AnyModel:
    """The model of that name; `own`: not shared with others, to put LoRA adapters into it."""
    from rewriting.runtime.language_models.backbone import Backbone
    from rewriting.runtime.models.named import load_causal, load_config, load_seq2seq

    if getattr(load_config(name), "is_encoder_decoder", False):
        return Seq2SeqModel(*load_seq2seq(name, options=options))
    if own:
        return CausalModel(*load_causal(name, options=options))
    backbone = Backbone.shared(name, options=options)
    return CausalModel(backbone.model, backbone.tokenizer)


@torch.no_grad()
def _output_scale(model: Any) -> float:
    """What the hidden states are multiplied with before the output layer, found by trying."""
    ids = torch.arange(4, device=model.device)[None]
    output = model(input_ids=ids, decoder_input_ids=ids, output_hidden_states=True, use_cache=False)
    hidden, head = output.decoder_hidden_states[-1], model.get_output_embeddings()
    for scale in (1.0, float(model.config.hidden_size) ** -0.5):
        if torch.allclose(head(hidden * scale), output.logits, rtol=1e-2, atol=1e-4):
            return scale
    raise UserError(f"the output layer of a {type(model).__name__} is of a kind not known here.")


def padded_ids(rows: Sequence[Sequence[int]], device: Any) -> tuple[Tensor, Tensor]:
    """Ids [B, S], filled up on the right with 0, and the mask of what is no filling."""
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    return ids.to(device), mask.to(device)
