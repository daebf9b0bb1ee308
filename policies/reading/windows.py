"""Models that our reading of rows in pieces (cached_reading.py) cannot serve exactly.

Padding stands in the middle of a row and is masked there. A layer that looks back over everything
passes it by. One that looks back over a window of fewer tokens counts it, and forgets a token too
early; one that keeps a state instead of keys and values reads it. The log-probabilities of a row
would then depend on the rows beside it, so such models are refused.
"""

from __future__ import annotations

from typing import Any, Final

from rewriting.errors import UserError

WINDOWED: Final = ("sliding_attention", "chunked_attention", "local")
SERVED: Final = ("full_attention", "global", "moe", "dense", "sparse")  # the last are no attention


def layer_kinds(config: Any) -> set[str]:
    """How the layers of a language model attend, in the words of transformers."""
    kinds = getattr(config, "layer_types", None) or getattr(config, "attention_layers", None)
    if kinds:
        return set(kinds)
    if getattr(config, "sliding_window", None):
        return {"sliding_attention"}
    return {"chunked_attention" if getattr(config, "attention_chunk_size", None) else "global"}


def attention_window(model: Any) -> int | None:
    """How many tokens the layers that see the least look back over; None where all see all."""
    config = model.config.get_text_config(decoder=True)
    if not layer_kinds(config).intersection(WINDOWED):
        return None
    fields = ("sliding_window", "attention_chunk_size", "window_size")
    found = [getattr(config, field, None) for field in fields]
    return min((int(size) for size in found if isinstance(size, int) and size), default=None)


def check_window(model: Any, name: str, num_tokens: int, setting: str) -> None:
    """Raise unless every layer of the model sees all of so many tokens.

    setting: the one that bounds what is read before the first new token.
    """
    name = name or type(model).__name__
    others = layer_kinds(model.config.get_text_config(decoder=True)).difference(SERVED, WINDOWED)
    if others or getattr(model, "_is_stateful", False):
        kinds = ", ".join(sorted(others)) or "recurrent"
        raise UserError(
            f"{name} has {kinds} layers, which read the padding between prompt and response. "
            "Take a model whose layers all have full attention."
        )
    window = attention_window(model)
    if window is not None and num_tokens > window:
        raise UserError(
            f"{name} has layers that look back over {window} tokens, and prompt and response take "
            f"up to {num_tokens}: they would be read wrongly in a batch. Lower {setting} or "
            "max_new_tokens, or take a model with a longer window or full attention."
        )
