"""Attention with shared key heads on a CPU, without copies of the keys and values.

In Llama and its kin several query heads share one key head. Where there is a mask, transformers
copies keys and values for each of them, because the kernels of some GPUs need it. The CPU's kernel
does not: it gives the same bits from the originals, and sampling a token in a batch of sixteen
spends a seventh of the time on attention.
"""

from __future__ import annotations

from typing import Any, Final

from torch import Tensor, nn

NAME: Final = "sdpa_shared_keys"


def share_keys(model: Any) -> None:
    """Let a model on the CPU attend this way, where it has shared keys and would use `sdpa`."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    config = model.config.get_text_config()
    heads = getattr(config, "num_attention_heads", None)
    shared = getattr(config, "num_key_value_heads", None) or heads
    if model.device.type != "cpu" or shared == heads or config._attn_implementation != "sdpa":
        return
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """As transformers calls it; what is not the plain masked case goes the way it always went."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    plain = options.get("position_bias") is None and options.get("cache") is None
    if attention_mask is None or query.device.type != "cpu" or not plain:
        rest: Any = (module, query, key, value, attention_mask, dropout, scaling)
        return sdpa_attention_forward(*rest, **options)
    attended = nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        dropout_p=dropout,
        scale=scaling,
        enable_gqa=True,
    )
    return attended.transpose(1, 2).contiguous(), None
