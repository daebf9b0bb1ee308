"""A tiny T5 with a tokenizer of characters, made on the spot."""

from pathlib import Path
from typing import Any

import torch

from tests.tiny_lm import CHARACTERS


def tiny_t5_tokenizer() -> Any:
    """As T5's: <pad> is 0 and starts a response, </s> is 1 and ends it."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "</s>", "<unk>", *CHARACTERS]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def tiny_t5(layers: int = 2, heads: int = 3, sharp: bool = False) -> Any:
    """heads × d_kv differs from d_model, as in flan-t5-small.

    sharp: the output layer does not scale hidden states down, as flan-t5's does not. Otherwise, in
    so small a model, no token can be much more likely than the others.
    """
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(CHARACTERS) + 3,
        d_model=16,
        d_kv=4,
        d_ff=32,
        num_layers=layers,
        num_decoder_layers=layers,
        num_heads=heads,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=16,
        feed_forward_proj="gated-gelu",
        initializer_factor=0.7 if sharp else 1.0,
        dropout_rate=0.1,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    config.scale_decoder_outputs = not sharp
    return T5ForConditionalGeneration(config).eval()


def write_tiny_t5(folder: Path) -> Path:
    tiny_t5().save_pretrained(folder)
    tiny_t5_tokenizer().save_pretrained(folder)
    return folder
