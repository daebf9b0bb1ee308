"""A causal model, a tokenizer and data small enough for TRL's real trainers in a test."""

from pathlib import Path
from typing import Any

WORDS = ("i", "am", "so", "sorry", "sad", "why", "you", "exam", "rain", "dog", "stop", "ok")
SPECIAL = ("<pad>", "</s>", "<unk>")
CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }} {% endfor %}"


def tiny_model() -> tuple[Any, Any]:
    """A Llama of one layer with random weights, and a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config), tokenizer


def exchanges(conversational: bool = False) -> Any:
    """Four rows with a prompt and the columns of rewriting."""
    from datasets import Dataset

    seekers = ["i am so sad", "the exam", "rain", "you ok"]
    prompts = [[{"role": "user", "content": text}] for text in seekers]
    return Dataset.from_dict(
        {
            "prompt": prompts if conversational else seekers,
            "seeker_post": seekers,
            "response_post": ["stop", "ok", "why", "so sorry"],
        }
    )


def options(folder: Path) -> dict[str, Any]:
    """Two steps of two prompts with two samples each, in float32 on the CPU."""
    return {
        "output_dir": str(folder),
        "max_steps": 2,
        "per_device_train_batch_size": 4,
        "num_generations": 2,
        "max_completion_length": 4,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
        "beta": 0.0,  # RLOO would load a reference model by the name of the first
    }
