"""Rows and settings of a run that takes seconds."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from recipes.train.emprl.recipe import Config

TOPICS = ("job", "cat", "exam", "house", "mother", "sleep")
ROWS = [
    {
        "seeker_post": f"I lost my {topic} {number}.",
        "response_post": "So sorry." if number % 2 else "Try again.",
        "history": ["Hi.", "Yes?"] if number > 3 else [],
    }
    for topic in TOPICS
    for number in range(6)
]
SETTINGS: dict[str, Any] = {
    "max_context_tokens": 96,
    "max_new_tokens": 10,
    "num_virtual_tokens": 3,
    "sft_steps": 3,
    "sft_batch_size": 4,
    "sft_micro_batch_size": 2,
    "sft_dev_rows": 4,
    "steps": 3,
    "batch_size": 4,
    "minibatch_size": 2,
    "inner_epochs": 2,
    "dev_rows": 2,
    "eval_every": 2,
    "save_every": 2,
    "show_every": 2,
    "half": False,
}


def changed(config: Config, **changes: Any) -> Config:
    return Config(**{**vars(config), **changes})


def flags(config: Config) -> list[str]:
    return [word for name, value in vars(config).items() for word in (f"--{name}", str(value))]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "policy" / "adapter_model.safetensors")


def log(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        {k: v for k, v in json.loads(line).items() if not k.startswith("seconds_")}
        for line in lines
    ]
