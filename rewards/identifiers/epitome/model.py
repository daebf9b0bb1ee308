"""The empathy identifier: levels and rationales from a seeker post and a response.

After EPITOME (arXiv 2009.08441): encode both posts, let the response attend to the seeker post (one
head, added as a residual), read a yes/no per response token from the token states, and the level
from the pooled response.

The level is read in two halves, which the paper does in one softmax. A gate says whether there is
any empathy of the kind; the strength, weak or strong, is then read off the rationale alone, from
layers one and two thirds up. Weak levels are rare (60 to 90 rows), and whether "What happened?" is
weak is said by those two words, not by the hundred around them: a linear rule on the rationale,
fitted after training (strength.py), tells weak from strong where a head over the whole response,
trained with everything else, learnt the rows by heart.

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
    gate_logits: Tensor  # (B, M), raw: is there any
    rationale_logits: Tensor  # (B, M, T)
    evidence: Tensor  # (B, M, 2D + 1), what the strength is read from


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
    """Attention, rationale head and gate of one mechanism.

    The gate reads the first token (as in the paper), the mean, the maximum, and the mean
    weighted by the rationale probabilities: the rationale says where the empathy is. That weighting
    is detached, so the gate's loss cannot bend the rationales.
    """

    def __init__(
        self, hidden_size: int, attention_size: int, head_size: int, dropout: float
    ) -> None:
        super().__init__()
        self.attention = SeekerAttention(hidden_size, attention_size)
        self.dropout = nn.Dropout(dropout)
        self.rationale = nn.Linear(hidden_size, 1)
        self.gate = nn.Sequential(
            nn.Linear(4 * hidden_size, head_size),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(head_size, 1),
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
        return self.gate(self.dropout(pooled)).squeeze(-1), rationale_BT


class EmpathyIdentifier(nn.Module):
    """Levels and rationales for `mechanisms` over any Hugging Face encoder (BERT kind or
    T5EncoderModel).

    Args:
        encoder: reads the response, and the seeker post too unless `seeker_encoder` is given.
        mechanisms: one head each; a single name gives the paper's independent model.
        seeker_encoder: a second encoder for the S role (the paper's arrangement).
        seeker_gradient: False stops the gradient at the encoded seeker post. A shared encoder still
            learns, from the response; a step then costs about a quarter less.

    The buffers hold what is fitted after training: `gate_scale` and `gate_bias` make the gate's
    probability honest, `strength_weight` and `strength_bias` are the linear rule on the rationale;
    `gate_bar` and `strength_bar` are what those logits must reach for a level to be called, and
    `rationale_threshold` what a word must reach. They are saved with the weights.
    """

    gate_scale: Tensor
    gate_bias: Tensor
    strength_weight: Tensor
    strength_bias: Tensor
    gate_bar: Tensor
    strength_bar: Tensor
    rationale_threshold: Tensor

    def __init__(
        self,
        encoder: Any,
        mechanisms: Sequence[str] = MECHANISMS,
        *,
        seeker_encoder: nn.Module | None = None,
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
        self.hidden_size = encoder.config.hidden_size
        depth = encoder.config.num_hidden_layers
        self.strength_layers = (max(1, round(depth / 3)), max(1, round(depth * 2 / 3)))
        self.heads = nn.ModuleDict(
            {
                name: MechanismHead(self.hidden_size, attention_size, head_size, dropout)
                for name in mechanisms
            }
        )
        self.register_buffer("gate_scale", torch.ones(len(mechanisms)))
        self.register_buffer("gate_bias", torch.zeros(len(mechanisms)))
        self.register_buffer(
            "strength_weight", torch.zeros(len(mechanisms), 2 * self.hidden_size + 1)
        )
        self.register_buffer("strength_bias", torch.zeros(len(mechanisms)))
        self.register_buffer("gate_bar", torch.zeros(len(mechanisms)))
        self.register_buffer("strength_bar", torch.zeros(len(mechanisms)))
        self.register_buffer("rationale_threshold", torch.full((len(mechanisms),), 0.5))

    def encode_response(self, ids: Tensor, mask: Tensor) -> Tensor:
        """States [B, T, 3D]: of the last layer, and beside them those the strength is read from.

        No gradient goes through the latter: the few weak rows would be learnt by heart.
        """
        output = self.encoder(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        lower = [output.hidden_states[layer].detach() for layer in self.strength_layers]
        return torch.cat([output.last_hidden_state, *lower], dim=-1)

    def encode_seeker(self, ids: Tensor, mask: Tensor) -> Tensor:
        """States [B, S, D]. A post may be encoded once and scored against many responses."""
        encoder = self.seeker_encoder if self.seeker_encoder is not None else self.encoder
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.seeker_gradient):
            return encoder(input_ids=ids, attention_mask=mask).last_hidden_state

    def score_encoded(
        self, seeker_BSD: Tensor, seeker_mask: Tensor, encoded_BTE: Tensor, response_mask: Tensor
    ) -> IdentifierOutput:
        """From encoded posts, E = 3D. A seeker post may come encoded as a response is."""
        seeker_BSD = seeker_BSD[..., : self.hidden_size]
        last_BTD = encoded_BTE[..., : self.hidden_size]
        outputs = [
            self.heads[name](last_BTD, response_mask, seeker_BSD, seeker_mask)
            for name in self.mechanisms
        ]
        rationale_logits = torch.stack([rationale for _, rationale in outputs], dim=1)
        marks_BMT = rationale_logits.sigmoid() * response_mask[:, None, :]
        return IdentifierOutput(
            torch.stack([gate for gate, _ in outputs], dim=1),
            rationale_logits,
            evidence(encoded_BTE[..., self.hidden_size :], marks_BMT),
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

    def calibrated(self, output: IdentifierOutput) -> tuple[Tensor, Tensor]:
        """The logits (B, M) of some against none, and of strong against weak."""
        strength_BM = (output.evidence * self.strength_weight).sum(-1) + self.strength_bias
        return output.gate_logits * self.gate_scale + self.gate_bias, strength_BM

    def level_probabilities(self, output: IdentifierOutput) -> Tensor:
        """Calibrated probabilities (B, M, L); their expected level is what a reward should use."""
        gate_BM, strength_BM = (logits.sigmoid() for logits in self.calibrated(output))
        levels = (1 - gate_BM, gate_BM * (1 - strength_BM), gate_BM * strength_BM)
        return torch.stack(levels, dim=-1)

    def decide_levels(self, output: IdentifierOutput) -> Tensor:
        """Levels (B, M): through the gate or not, and then weak or strong."""
        gate_BM, strength_BM = self.calibrated(output)
        strong_BM = (strength_BM > self.strength_bar).long()
        return (gate_BM > self.gate_bar) * (1 + strong_BM)


def evidence(states_BTD: Tensor, marks_BMT: Tensor) -> Tensor:
    """What the strength is read from, (B, M, D + 1): the mean of the marked tokens' states, here D
    wide, and the logarithm of how many they are. Weak words are few."""
    count_BM = marks_BMT.sum(-1, keepdim=True)
    mean_BMD = marks_BMT @ states_BTD / count_BM.clamp(min=0.1)
    return torch.cat([mean_BMD, count_BM.clamp(min=0.1).log()], dim=-1)


def shipped_state(
    model: EmpathyIdentifier, dtype: torch.dtype = torch.float16
) -> dict[str, Tensor]:
    """What differs from the pretrained encoder: trainable parameters in half precision, plus
    buffers."""
    state = {n: p.detach().to(dtype) for n, p in model.named_parameters() if p.requires_grad}
    fitted = dict(model.named_buffers(recurse=False))
    return state | {name: buffer.detach().clone() for name, buffer in fitted.items()}
