"""Log-probabilities of given tokens under a frozen output layer, without keeping any logits.

As the layer W is not trained, the gradient of a token's log-probability with respect to its hidden
state, W[token] − Σ_v p(v)·W[v], is known as soon as the logits are. Only that is kept, [N, D]; the
loss then scales it by one number per token. Autograd's way holds several tensors of the size of
the vocabulary, [N, V], until the backward pass, and spends more time on moving than on computing.

Legend: N tokens, V vocabulary, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

CHUNK = 256  # tokens whose logits are held at once


class ScaledHead(nn.Module):
    """The output layer on scaled hidden states: T5 with tied embeddings wants them smaller."""

    def __init__(self, head: Any, scale: float) -> None:
        super().__init__()
        self.head = head
        self.scale = scale

    def forward(self, hidden_ND: Tensor) -> Tensor:
        logits: Tensor = self.head(hidden_ND if self.scale == 1 else hidden_ND * self.scale)
        return logits


def frozen_layer(head: Any) -> tuple[Tensor, float] | None:
    """The weight [V, D] of a plain frozen output layer, and the scale before it; else None."""
    scale = 1.0
    if isinstance(head, ScaledHead):
        head, scale = head.head, head.scale
    plain = isinstance(head, nn.Linear) and head.bias is None and not head.weight.requires_grad
    return (head.weight, scale) if plain else None


def frozen_head_log_probs(
    hidden_ND: Tensor,
    target_N: Tensor,
    weight_VD: Tensor,
    scale: float,
    shape: Any,
) -> Tensor:
    """[N], float32: log softmax(shape(scale · hidden · Wᵀ))[target]. Differentiable in hidden.

    shape: has a `temperature`, and makes the logits [N, V] those of the distribution.
    """
    found: Tensor = _LogProbs.apply(hidden_ND, target_N, weight_VD, scale, shape.temperature, shape)
    return found


class _LogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        target_N: Tensor,
        weight_VD: Tensor,
        scale: float,
        temperature: float,
        shape: Callable[[Tensor], Tensor],
    ) -> Tensor:
        log_probs, gradients = [], []
        for hidden, target in zip(hidden_ND.split(CHUNK), target_N.split(CHUNK), strict=True):
            with torch.autocast(hidden.device.type, enabled=False):
                scaled = hidden.to(weight_VD.dtype) * scale
                logits_NV = shape(scaled @ weight_VD.T)
                chosen_N = logits_NV.gather(1, target[:, None])[:, 0]
                top_N1 = logits_NV.amax(dim=-1, keepdim=True)
                weights_NV = logits_NV.sub_(top_N1).exp_()
                total_N = weights_NV.sum(dim=-1)
                log_probs.append(chosen_N - top_N1[:, 0] - total_N.log())
                if ctx.needs_input_grad[0]:
                    mean_ND = weights_NV.to(weight_VD.dtype) @ weight_VD / total_N[:, None]
                    gradients.append((weight_VD[target] - mean_ND) * (scale / temperature))
        if gradients:
            ctx.save_for_backward(torch.cat(gradients).to(hidden_ND.dtype))
        return torch.cat(log_probs)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradient_ND,) = ctx.saved_tensors
        return (upstream[0][:, None].to(gradient_ND.dtype) * gradient_ND, *[None] * 5)
