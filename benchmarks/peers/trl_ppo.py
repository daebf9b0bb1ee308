"""The side of TRL 0.11.4 in ppo.py, which starts it in an environment with that version.

As its own examples do it: `PPOTrainer.generate`, then `PPOTrainer.step`. In its favour, all
responses are generated in one batch (its default are four at a time), and dropout is off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from side_process import TwoClocks, serve
from transformers import PreTrainedTokenizerFast
from trl import (  # type: ignore[attr-defined]  # gone from the one mypy sees
    AutoModelForSeq2SeqLMWithValueHead,
    PPOConfig,
    PPOTrainer,
)


def start(settings: dict[str, Any]) -> Callable[[TwoClocks], Any]:
    """A step of PPO on the given contexts."""
    trainer = new_trainer(settings)
    contexts = [torch.tensor(context) for context in settings["contexts"]]
    scores = [torch.tensor(score) for score in settings["scores"]]
    length = settings["response_tokens"]
    sampling = {"do_sample": True, "top_k": 0, "top_p": 1.0, "pad_token_id": 0}
    lengths = {"min_new_tokens": length, "max_new_tokens": length}

    def step(clocks: TwoClocks) -> Any:
        with clocks("sampling"):
            responses = trainer.generate(contexts, batch_size=len(contexts), **sampling, **lengths)
        with clocks("learning"):
            figures = trainer.step(contexts, responses, scores)
        # The decoder's start token is the first of each.
        written = [len(response) - 1 for response in responses]
        return {"tokens": sum(written) / len(written), "loss": float(figures["ppo/loss/total"])}

    return step


def new_trainer(settings: dict[str, Any]) -> Any:
    options: dict[str, Any] = {"dropout_rate": 0.0}
    if settings["adapter"] == "lora":
        from peft import LoraConfig

        options["peft_config"] = LoraConfig(
            task_type="SEQ_2_SEQ_LM", r=settings["rank"], target_modules=["q", "k", "v", "o"]
        )
    folder = settings["folder"]
    model = AutoModelForSeq2SeqLMWithValueHead.from_pretrained(folder, **options)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=f"{folder}/tokenizer.json", pad_token="<pad>", eos_token="</s>"
    )
    config = PPOConfig(
        batch_size=len(settings["contexts"]),
        mini_batch_size=settings["minibatch_size"],
        ppo_epochs=settings["inner_epochs"],
        max_grad_norm=1.0,
    )
    return PPOTrainer(config, model, None, tokenizer)


if __name__ == "__main__":
    serve(start)
