"""A tiny chat model, and rows for it."""

import re
from pathlib import Path
from typing import Any

import torch

from tests.tiny_lm import tiny_llama, tiny_tokenizer

TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
ROWS = [
    {"seeker_post": f"I lost my {thing} {n}.", "response_post": "Look for it."}
    for thing in ("job", "cat", "keys")
    for n in range(8)
]


def unexplained(row: dict[str, Any]) -> list[str]:
    """The metrics of a row of TRL's log that docs/grpo.md has no word about."""
    page = (Path(__file__).parents[4] / "docs" / "grpo.md").read_text(encoding="utf-8")
    table = page.split("| metric |")[1]
    names = set(re.findall(r"`([^`]+)`", table))
    patterns = [
        re.escape(name).replace("NAME", r"\w+").replace("PART", r"\w+").replace("…", ".*")
        for name in names
    ]
    known = re.compile("|".join(patterns))
    return [name for name in row if name != "step" and not known.fullmatch(name)]


def write_chat_model(folder: Path) -> str:
    """A random language model with a chat template, on one thread."""
    torch.set_num_threads(1)
    model = tiny_llama()
    model.config.max_position_embeddings = 1024
    model.save_pretrained(folder)
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return str(folder)
