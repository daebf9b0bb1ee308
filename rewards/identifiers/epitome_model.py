"""The empathy identifier: levels and rationales from a seeker post and a response.

After EPITOME (arXiv 2009.08441): encode both posts, let the response attend to the seeker post (one
head, added as a residual), read the level from the pooled response and a yes/no per response token
from the token states.

Left as in the paper when `independent`: two encoders and one model per mechanism. The default
shares one encoder between both roles and all mechanisms, so each post is encoded once; attention
and heads stay separate per mechanism.

Dimensions: B pairs, S seeker tokens, T response tokens, D hidden size, M mechanisms, L levels.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rewriting.exchange import MECHANISMS


class IdentifierOutput(NamedTuple):
    level_logits: Tensor  # (B, M, L), raw
    rationale_logits: Tensor  # (B, M, T)


class SeekerAttention(nn.Module):
    """Single-head attention, response as query. Padding of the seeker post is masked, which the
    released code forgets. The output projection starts at zero: training begins without the
    seeker."""

    def __init__(self, hidden_size: int, attention_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden_size, attention_size)
        self.key = nn.Linear(hidden_size, attention_size)
        self.value = nn.Linear(hidden_size, attention_size)
        self.output = nn.Linear(attention_size, hidden_size)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, response_BTD: Tensor, seeker_BSD: Tensor, seeker_mask_BS: Tensor) -> Tensor:
        attended = nn.functional.scaled_dot_product_attention(
            self.query(response_BTD),
            self.key(seeker_BSD),
            self.value(seeker_BSD),
            attn_mask=seeker_mask_BS.bool()[:, None, :],
        )
        return response_BTD + self.output(attended)


class MechanismHead(nn.Module):
    """Attention, rationale head and level head of one mechanism.

    The level is read from the first token (as in the paper), the mean, the maximum, and the mean
    weighted by the rationale probabilities: the rationale says where the empathy is. That weighting
    is detached, so the level loss cannot bend the rationales.
    """

    def __init__(
        self, hidden_size: int, attention_size: int, head_size: int, levels: int, dropout: float
    ) -> None:
        super().__init__()
        self.attention = SeekerAttention(hidden_size, attention_size)
        self.dropout = nn.Dropout(dropout)
        self.rationale = nn.Linear(hidden_size, 1)
        self.level = nn.Sequential(
            nn.Linear(4 * hidden_size, head_size),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(head_size, levels),
        )

    def forward(
        self,
        response_BTD: Tensor,
        response_mask_BT: Tensor,
        seeker_BSD: Tensor,
        seeker_mask_BS: Tensor,
    ) -> tuple[Tensor, Tensor]:
        states = self.attention(response_BTD, seeker_BSD, seeker_mask_BS)
        rationale_BT = self.rationale(self.dropout(states)).squeeze(-1)
        mask = response_mask_BT.unsqueeze(-1).to(states.dtype)
        weight = rationale_BT.detach().sigmoid().unsqueeze(-1) * mask
        pooled = torch.cat(
            [
                states[:, 0],
                (states * mask).sum(1) / mask.sum(1),
                states.masked_fill(mask == 0, torch.finfo(states.dtype).min).amax(1),
                (states * weight).sum(1) / (weight.sum(1) + 0.1),
            ],
            dim=-1,
        )
        return self.level(self.dropout(pooled)), rationale_BT


class EmpathyIdentifier(nn.Module):
    """Levels and rationales for `mechanisms` over any Hugging Face encoder (BERT kind or
    T5EncoderModel).

    Args:
        encoder: reads the response, and the seeker post too unless `seeker_encoder` is given.
        mechanisms: one head each; a single name gives the paper's independent model.
        seeker_encoder: a second encoder for the S role (the paper's arrangement).
        seeker_gradient: False stops the gradient at the encoded seeker post. A shared encoder still
        learns, from
            the response; a step then costs about a quarter less.

    The buffers hold what is fitted after training on held-out rows: `temperature` and
    `calibration_bias` make probabilities honest, `decision_bias` shifts the arg max towards rare
    levels, `rationale_threshold` is the bar a word must reach. They are saved with the weights.
    """

    temperature: Tensor
    calibration_bias: Tensor
    decision_bias: Tensor
    rationale_threshold: Tensor

    def __init__(
        self,
        encoder: Any,
        mechanisms: Sequence[str] = MECHANISMS,
        *,
        seeker_encoder: nn.Module | None = None,
        levels: int = 3,
        attention_size: int = 128,
        head_size: int = 128,
        dropout: float = 0.2,
        seeker_gradient: bool = True,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.seeker_gradient = seeker_gradient
        self.seeker_encoder = seeker_encoder
        self.mechanisms = tuple(mechanisms)
        hidden_size = encoder.config.hidden_size
        self.heads = nn.ModuleDict(
            {
                name: MechanismHead(hidden_size, attention_size, head_size, levels, dropout)
                for name in mechanisms
            }
        )
        self.register_buffer("temperature", torch.ones(len(mechanisms)))
        self.register_buffer("calibration_bias", torch.zeros(len(mechanisms), levels))
        self.register_buffer("decision_bias", torch.zeros(len(mechanisms), levels))
        self.register_buffer("rationale_threshold", torch.full((len(mechanisms),), 0.5))

    def encode_response(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state

    def encode_seeker(self, ids: Tensor, mask: Tensor) -> Tensor:
        """A seeker post may be encoded once and scored against many responses."""
        encoder = self.seeker_encoder if self.seeker_encoder is not None else self.encoder
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.seeker_gradient):
            return encoder(input_ids=ids, attention_mask=mask).last_hidden_state

    def score_encoded(
        self, seeker_BSD: Tensor, seeker_mask: Tensor, response_BTD: Tensor, response_mask: Tensor
    ) -> IdentifierOutput:
        outputs = [
            self.heads[name](response_BTD, response_mask, seeker_BSD, seeker_mask)
            for name in self.mechanisms
        ]
        return IdentifierOutput(
            torch.stack([level for level, _ in outputs], dim=1),
            torch.stack([rationale for _, rationale in outputs], dim=1),
        )

    def forward(
        self, seeker_ids: Tensor, seeker_mask: Tensor, response_ids: Tensor, response_mask: Tensor
    ) -> IdentifierOutput:
        return self.score_encoded(
            self.encode_seeker(seeker_ids, seeker_mask),
            seeker_mask,
            self.encode_response(response_ids, response_mask),
            response_mask,
        )

    def level_probabilities(self, level_logits: Tensor) -> Tensor:
        """Calibrated probabilities (B, M, L); their expected level is what a reward should use."""
        scaled = level_logits / self.temperature[:, None] + self.calibration_bias
        return scaled.softmax(-1)

    def decide_levels(self, level_logits: Tensor) -> Tensor:
        """Levels (B, M): the arg max of calibrated log-probabilities plus the decision offsets."""
        return (self.level_probabilities(level_logits).log() + self.decision_bias).argmax(-1)


def add_lora(encoder: nn.Module, rank: int, alpha: int, dropout: float = 0.0) -> nn.Module:
    """Put LoRA on every linear layer of `encoder`, in place; everything else in it is frozen."""
    from peft import LoraConfig, inject_adapter_in_model

    linear = sorted(name for name, part in encoder.named_modules() if isinstance(part, nn.Linear))
    config = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=linear)
    return inject_adapter_in_model(config, encoder)


def shipped_state(
    model: EmpathyIdentifier, dtype: torch.dtype = torch.float16
) -> dict[str, Tensor]:
    """What differs from the pretrained encoder: trainable parameters in half precision, plus
    buffers."""
    state = {n: p.detach().to(dtype) for n, p in model.named_parameters() if p.requires_grad}
    names = ("temperature", "calibration_bias", "decision_bias", "rationale_threshold")
    return state | {name: getattr(model, name).detach().clone() for name in names}
