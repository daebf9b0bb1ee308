"""Rows and settings of a run that takes seconds, with tiny models to judge it."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from recipes.train.partner.recipe import Config
from rewards.identifiers.epitome.identifier import Architecture, EpitomeIdentifier
from rewriting.runtime.language_models.backbone import Backbone
from tests.tiny_lm import write_tiny_encoder

TOPICS = ("job", "cat", "exam", "house", "mother", "sleep")
LABELS = {"emotional_reactions": 2, "interpretations": 0, "explorations": 2}
WEAK = dict.fromkeys(LABELS, 0)
ROWS: list[dict[str, Any]] = [
    {
        "seeker_post": f"I lost my {topic} {n}.",
        "response_post": f"I am so sorry, {topic}. Take a walk {n}. What was it?",
        "rationales": {
            "emotional_reactions": [f"I am so sorry, {topic}."],
            "explorations": ["What was it?"],
        },
    }
    | LABELS
    for topic in TOPICS
    for n in range(5)
] + [
    {"seeker_post": f"My {topic} is bad {n}.", "response_post": f"Get another {topic} soon."} | WEAK
    for topic in TOPICS
    for n in range(3)
]
REWARDS = "{repetition: {weight: 1.0, n: 1}, edit_size: 0.5}"
SETTINGS: dict[str, Any] = {
    "from_policy": "",
    "rewards": REWARDS,
    "rank": 2,
    "max_new_tokens": 6,
    "max_prompt_tokens": 160,
    "warm_steps": 2,
    "warm_batch_size": 4,
    "steps": 4,
    "batch_size": 2,
    "num_samples": 2,
    "learning_rate": 0.003,
    "micro_batch_size": 2,
    "dev_rows": 2,
    "eval_every": 2,
    "save_every": 2,
    "show_every": 2,
    "half": False,
}


@torch.no_grad()
def write_tiny_identifier(folder: Path) -> Path:
    """An identifier that tells texts apart: its attention and LoRA would start at 0."""
    torch.manual_seed(0)
    encoder = str(write_tiny_encoder(folder))
    architecture = Architecture(encoder, rank=2, max_seeker_tokens=32, max_response_tokens=64)
    networks, tokenizer = architecture.build()
    for parameter in networks.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.3)
    EpitomeIdentifier(architecture, networks, tokenizer, "tiny").save(folder / "identifier")
    return folder / "identifier"


@torch.no_grad()
def write_tiny_adapter(model: Path, folder: Path) -> Path:
    """A reverse language model that says other things than the bare one."""
    torch.manual_seed(0)
    backbone = Backbone.load(str(model))
    for parameter in backbone.add("reverse_lm", rank=2):
        torch.nn.init.normal_(parameter, std=0.3)
    backbone.save("reverse_lm", folder / "reverse_lm")
    return folder / "reverse_lm"


def flags(config: Config, **changed: Any) -> list[str]:
    values = {**vars(config), **changed}
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    policy = folder / "policy"
    return {
        f"{path.name}:{name}": tensor
        for path in sorted(policy.glob("*.safetensors"))
        for name, tensor in load_file(path).items()
    }


def log(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {k: v for k, v in json.loads(line).items() if not k.startswith("seconds")} for line in lines
    ]
