"""A tiny encoder in a folder, and modules whose trained weights saving does not round."""

from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from tests.tiny_lm import SIZES, tiny_tokenizer

Module = TypeVar("Module", bound=nn.Module)


def write_tiny_bert(folder: Path) -> Path:
    """A BERT of one layer with a tokenizer of characters."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        **SIZES,
        num_hidden_layers=1,
        max_position_embeddings=128,
        initializer_range=0.2,  # wide, so that texts differ
    )
    BertModel(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@torch.no_grad()
def in_half_precision(module: Module) -> Module:
    """Move what is trained off its start, to numbers that half precision holds."""
    torch.manual_seed(1)
    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.copy_((parameter + torch.randn_like(parameter) / 4).half())
    return module


def write_tiny_mpnet(folder: Path) -> Path:
    """An MPNet of two layers with the same tokenizer."""
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(0)
    config = MPNetConfig(
        **SIZES,
        num_hidden_layers=2,
        max_position_embeddings=160,
        initializer_range=0.2,
    )
    MPNetModel(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def write_tiny_qwen(folder: Path) -> Path:
    """A causal Qwen2 of two layers with the same tokenizer."""
    from transformers import Qwen2Config, Qwen2Model

    torch.manual_seed(0)
    config = Qwen2Config(
        **SIZES,
        num_hidden_layers=2,
        num_key_value_heads=1,
        max_position_embeddings=160,
        initializer_range=0.2,
    )
    Qwen2Model(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder
