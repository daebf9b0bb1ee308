"""The pre-training of `train.py identifier` on unlabelled posts, where it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recipes.train.identifier.recipe import Config


def adapt(config: Config, networks: Any, tokenizer: Any, accelerator: Any) -> None:
    """Pre-train one encoder on unlabelled posts, and give all others what it has learnt."""
    from recipes.shared.sources import load_splits
    from rewards.identifiers.epitome.adaptation import (
        MaskedLanguageModel,
        copy_adapted,
        texts_to_adapt_on,
    )
    from rewriting.runtime.training.supervised import train

    splits = load_splits(config.adapt_data)
    model = MaskedLanguageModel(networks[0].encoder, tokenizer).to(accelerator.device)
    rows = {
        name: texts_to_adapt_on(splits[name], tokenizer, config.train_response_tokens)
        for name in ("train", "dev")
    }
    train(
        model,
        model,
        rows["train"],
        rows["dev"][:512],
        output=Path(config.output) / "adaptation",
        accelerator=accelerator,
        steps=config.adapt_steps,
        batch_size=32,
        micro_batch_size=16,
        learning_rate=config.adapt_rate,
        eval_every=max(1, config.adapt_steps // 4),
        save_every=max(1, config.adapt_steps // 4),
        seed=config.seed,
        settings={"data": config.adapt_data, "encoder": config.encoder, "rank": config.rank},
        size=len,
        title="adaptation",
    )
    for network in networks:
        for encoder in (network.encoder, network.seeker_encoder):
            if encoder is not None and encoder is not model.encoder:
                copy_adapted(model.encoder, encoder)
