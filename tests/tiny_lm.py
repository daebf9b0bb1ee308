"""A tiny Llama with a tokenizer of characters, and a tiny sentence encoder, made on the spot."""

from pathlib import Path
from typing import Any

import torch

CHARACTERS = [chr(code) for code in range(32, 127)] + ["\n"]


def tiny_tokenizer() -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["</s>", "<unk>", *CHARACTERS]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="</s>", unk_token="<unk>", pad_token="</s>"
    )


SIZES: dict[str, Any] = {
    "vocab_size": len(CHARACTERS) + 2,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_attention_heads": 2,
}
"""Of every tiny model whose tokenizer is this one."""


def tiny_llama(layers: int = 2) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        **SIZES,
        num_hidden_layers=layers,
        num_key_value_heads=1,
        max_position_embeddings=256,
        initializer_range=0.5,  # far from uniform, so that a wrong position shows
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def write_tiny_llama(folder: Path) -> Path:
    tiny_llama().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def write_tiny_encoder(folder: Path) -> Path:
    """A sentence-transformers folder: a BERT of one layer, mean pooling."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    parts = folder / "parts"
    config = BertConfig(
        **SIZES,
        num_hidden_layers=1,
        max_position_embeddings=256,
    )
    BertModel(config).save_pretrained(parts)
    tiny_tokenizer().save_pretrained(parts)
    transformer = Transformer(str(parts), max_seq_length=64)
    model = SentenceTransformer(modules=[transformer, Pooling(16)], device="cpu")
    model.save(str(folder / "encoder"))
    return folder / "encoder"
