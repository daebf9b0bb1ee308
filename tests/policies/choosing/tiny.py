"""A tiny choosing policy: a bank of a few sentences, an encoder made on the spot."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from policies.choosing.agent import ChoosingAgent
from policies.choosing.bank import Bank, Fitting
from policies.choosing.settings import ChoosingSettings
from rewriting import Exchange
from rewriting.loop import EditState
from tests.rewards.reading.tiny import write_tiny_mpnet

ROWS = [
    Fitting("I failed my exam.", "That was so close."),
    Fitting("I failed my exam.", "What was it like?"),
    Fitting("My dog died.", "I miss him with you."),
    Fitting("My dog died.", "That was so close."),
    Fitting("Nobody calls me.", "That is a quiet kind of hurt."),
]
STATES = [
    EditState(Exchange("I failed.", "Study. Sleep."), ("Study.", "Sleep.")),
    EditState(Exchange("My cat died.", "No"), ("No",)),
    EditState(Exchange("Alone.", ""), ()),
    EditState(Exchange("I am sad and tired", "a. b. c."), ("Aa.", "B b.", "C."), 4, 1),
]


class Letters:
    """Unit vectors that count letters. Keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        self.asked += texts
        counts = np.array([[text.lower().count(c) for c in "abcdefghijklmnop"] for text in texts])
        return (counts + 0.01) / np.linalg.norm(counts + 0.01, axis=1, keepdims=True)


def tiny_bank() -> Bank:
    return Bank(Letters(), ROWS)


def tiny_agent(folder: Path, **settings: Any) -> ChoosingAgent:
    """Its heads are moved off their start, where everything is equally likely."""
    options = {"rank": 0, "layers": 0, "max_tokens": 64, "width": 8, "choices": 3} | settings
    encoder = str(write_tiny_mpnet(folder / "encoder"))
    agent = ChoosingAgent(ChoosingSettings(**options), bank=tiny_bank(), encoder=encoder)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        agent.module.read.bias.copy_(torch.tensor([3.0, 3.0, -3.0]))  # believes most sentences
        for parameter in agent.module.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return agent
