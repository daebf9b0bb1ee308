"""Prefix-tuning (Li and Liang, arXiv 2101.00190): trained keys and values before a model's own.

The files are PEFT's, and PEFT reads them to the same numbers. The running is ours, for two reasons.
PEFT hands an encoder-decoder of L layers the same prefix in layers i and i + L/2 and never uses
half of what it trains; here every layer has its own. And a prefix that is a tensor rather than a
state of the model is switched by passing another one.

In a file for an encoder-decoder, PEFT looks for the keys and values of layer i at the places 4i and
4i + 1 of twice as many layers; what is between and behind them stays 0.

Legend: B rows, P virtual tokens, L layers, H heads, K width of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn

from rewriting.errors import UserError
from rewriting.runtime.files.tensors import load_tensors, save_tensors

KeysValues = Sequence[tuple[Tensor, Tensor]]
WEIGHTS: Final = "adapter_model.safetensors"
KEY: Final = "prompt_embeddings"


class Prefix(nn.Module):
    """P virtual tokens: a key and a value for every layer and head. In float32."""

    def __init__(self, keys_values: KeysValues) -> None:
        """Starts as given, L times [H, P, K]: the keys and values of real words start well."""
        super().__init__()
        together = torch.stack([torch.stack(pair) for pair in keys_values])
        self.weight_L2HPK = nn.Parameter(together.detach().float().clone())

    def keys_values(self, batch_size: int, dtype: torch.dtype) -> KeysValues:
        """L times keys and values [B, H, P, K]: the start of a cache."""
        weight = self.weight_L2HPK.to(dtype)
        shape = (batch_size, *weight.shape[2:])
        return [(keys.expand(shape), values.expand(shape)) for keys, values in weight]


def save_prefix(
    prefix: Prefix, folder: Path, *, model: str, is_seq2seq: bool, dtype: torch.dtype | None = None
) -> None:
    """Write PEFT's two files. float16 halves the larger one and rounds the weights."""
    from peft import PrefixTuningConfig

    weight = prefix.weight_L2HPK.detach().cpu()
    layers, _, heads, tokens, width = weight.shape
    if is_seq2seq:
        spread = weight.new_zeros(2 * layers, 2, heads, tokens, width)
        spread[0::2] = weight
        weight = spread
    flat = weight.permute(3, 0, 1, 2, 4).reshape(tokens, -1)
    save_tensors({KEY: flat}, folder / WEIGHTS, dtype=dtype)
    PrefixTuningConfig(
        task_type="SEQ_2_SEQ_LM" if is_seq2seq else "CAUSAL_LM",
        base_model_name_or_path=model,
        inference_mode=True,
        num_virtual_tokens=tokens,
        num_layers=len(weight),
        num_attention_heads=heads,
        token_dim=heads * width,
        encoder_hidden_size=heads * width,
        num_transformer_submodules=2 if is_seq2seq else 1,
    ).save_pretrained(str(folder))


@torch.no_grad()
def load_prefix(prefix: Prefix, folder: Path, *, is_seq2seq: bool) -> None:
    """Fill a prefix with the weights of a folder, which must be of its shape."""
    path = folder / WEIGHTS
    flat = load_tensors(path).get(KEY)
    layers, _, heads, tokens, width = prefix.weight_L2HPK.shape
    written = 2 * layers if is_seq2seq else layers
    if flat is None or flat.shape != (tokens, written * 2 * heads * width):
        raise UserError(f"{path} does not fit this model: it is of a generator on another one.")
    weight = flat.view(tokens, written, 2, heads, width).permute(1, 2, 3, 0, 4)
    prefix.weight_L2HPK.copy_(weight[0::2] if is_seq2seq else weight)
