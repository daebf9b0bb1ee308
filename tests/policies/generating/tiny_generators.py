"""Generators on tiny models whose adapters are far from doing nothing."""

from typing import Any

import torch

from policies.generating.generator import Generator
from policies.generating.models import AnyModel, CausalModel, Seq2SeqModel
from policies.generating.settings import GeneratorSettings
from rewriting.exchange import Exchange
from tests.tiny_lm import tiny_llama, tiny_tokenizer
from tests.tiny_t5 import tiny_t5, tiny_t5_tokenizer

EXCHANGES = [
    Exchange("I failed.", "Oh no!", id="a", history=("Hi", "Hello")),
    Exchange("She left and took it all.", "So sad.", id="b"),
    Exchange("Tired.", "Why?", id="c"),
    Exchange("He shouts.", "How bad.", id="d", history=("My boss.", "Yes?")),
]


def tiny_model(kind: str) -> AnyModel:
    if kind in ("t5", "sharp t5"):
        return Seq2SeqModel(tiny_t5(sharp=kind == "sharp t5"), tiny_t5_tokenizer())
    return CausalModel(tiny_llama(), tiny_tokenizer())


def tiny_generator(kind: str = "t5", *, noise: float = 0.3, **settings: Any) -> Generator:
    """noise: added to all that is trained, so that an adapter that is left out shows."""
    usual = {
        "num_virtual_tokens": 3,
        "rank": 2,
        "max_context_tokens": 80,
        "max_new_tokens": 6,
        "value_width": 8,
    }
    chosen = GeneratorSettings(**(usual | settings))
    generator = Generator(tiny_model(kind), chosen, model_name=kind, name="tiny", batch_size=4)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in generator.module.parameters():
            if parameter.requires_grad:
                parameter += noise * torch.randn_like(parameter)
    return generator


def ending_early(generator: Generator) -> Generator:
    """The generator, for which every fourth word ends a response: their lengths differ."""
    words = range(4, generator.model.model.config.vocab_size, 4)
    generator.model.end = (*generator.model.end, *words)
    return generator
