"""Tiny edit policies whose weights are not those of a fresh adapter, made on the spot."""

from typing import Any

import torch
from torch import Tensor

from policies.editing.actions import LogProbs
from policies.editing.agent import EditAgent
from policies.editing.settings import EditSettings
from rewriting import Exchange
from rewriting.loop import EditState
from rewriting.runtime.language_models.backbone import Backbone
from tests.tiny_lm import CHARACTERS, tiny_llama, tiny_tokenizer

STATES = [
    EditState(Exchange("I failed.", "Study. Sleep."), ("Study.", "Sleep.")),
    EditState(Exchange("Help me now, please", "No"), ("No",)),
    EditState(Exchange("Alone.", ""), ()),
    EditState(Exchange("I am sad and tired", "a. b. c."), ("Aa.", "B b.", "C."), 4, 1),
]


def tiny_gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(CHARACTERS) + 2,
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=256,
        initializer_range=0.5,  # far from uniform, so that a wrong position shows
        bos_token_id=0,
        eos_token_id=0,
    )
    return GPT2LMHeadModel(config).eval()


def tiny_backbone(kind: str = "llama") -> Backbone:
    model = tiny_gpt2() if kind == "gpt2" else tiny_llama()
    return Backbone(model, tiny_tokenizer(), name="tiny")


def tiny_agent(kind: str = "llama", *, seed: int = 0, **settings: Any) -> EditAgent:
    options = {"rank": 2, "head_width": 8, "max_new_tokens": 12} | settings
    agent = EditAgent(tiny_backbone(kind), EditSettings(**options), seed=seed)
    change(agent)
    return agent


@torch.no_grad()
def change(agent: EditAgent, seed: int = 1) -> None:
    """Move every trained weight: a fresh adapter does nothing, a fresh head nearly nothing."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in agent.module.parameters():
        if parameter.requires_grad:
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.15)


MANY = STATES * 5


SEEDS = list(range(len(MANY)))


KINDS = ["llama", "gpt2"]


def flat(found: LogProbs) -> Tensor:
    return torch.cat([found.position_B, found.entropy_B, *found.tokens])
