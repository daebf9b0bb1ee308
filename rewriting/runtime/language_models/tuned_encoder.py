"""A sentence encoder with LoRA on every linear layer: texts to vectors, in training and in use.

Legend: N texts, T tokens, D width of a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from rewriting.errors import UserError
from rewriting.runtime.batches import batches_by_length, max_padding
from rewriting.runtime.files.tensors import load_tensors
from rewriting.runtime.language_models.lora import add_lora
from rewriting.runtime.models.named import load_encoder

CPU_BATCH_TOKENS = 1024
GPU_BATCH_TOKENS = 8192


class TunedEncoder(nn.Module):
    """A pretrained encoder, frozen but for its LoRA matrices (arXiv 2106.09685), mean-pooled.

    rank: of the LoRA matrices; alpha is twice the rank; with 0 there are none, and nothing is
    trained. A text longer than `max_tokens` is cut. layers: only the first so many of the encoder
    are used; 0: all. The upper layers of a sentence encoder are tuned to topics. frozen_layers: so
    many of the lowest layers have no LoRA matrices, so training does not go back through them.
    """

    def __init__(
        self, name: str, rank: int, max_tokens: int, layers: int = 0, frozen_layers: int = 0
    ) -> None:
        super().__init__()
        self.frozen_layers = frozen_layers
        self.name, self.rank, self.max_tokens, self.layers = name, rank, max_tokens, layers
        # Heads are float32, and a score outside autocast must not meet another type.
        self.encoder, self.tokenizer = load_encoder(name, torch.float32)
        self.encoder.requires_grad_(False)
        if layers:
            cut(self.encoder, layers, name)
        if rank:
            tuned = upper_layers(self.encoder, frozen_layers, name)
            add_lora(tuned, rank, alpha=2 * rank)
        self.width = int(self.encoder.config.hidden_size)
        # A decoder keeps its layers in itself, an encoder keeps them in a stack.
        self.causal = not hasattr(self.encoder, "encoder")
        if self.causal and self.encoder.device.type == "cpu":
            # Short rows with a mask of their own: torch's fused attention takes twice as long.
            self.encoder.set_attn_implementation("eager")

    def forward(self, texts: Sequence[str]) -> Tensor:
        """[N, D]: unit vectors. Rows of similar length are encoded together."""
        ids = [self._tokens(text) for text in texts]
        device = next(self.encoder.parameters()).device
        most = CPU_BATCH_TOKENS if device.type == "cpu" else GPU_BATCH_TOKENS
        vectors: dict[int, Tensor] = {}
        for batch in batches_by_length([len(row) for row in ids], most, max_padding(device)):
            rows = [torch.tensor(ids[i]) for i in batch]
            ids_NT = nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
            mask_NT = nn.utils.rnn.pad_sequence(
                [torch.ones_like(row) for row in rows], batch_first=True
            ).to(device)
            states_NTD = self.encoder(input_ids=ids_NT, attention_mask=mask_NT).last_hidden_state
            weights_NT1 = mask_NT[..., None].to(states_NTD.dtype)
            mean_ND = (states_NTD * weights_NT1).sum(1) / weights_NT1.sum(1)
            vectors |= dict(zip(batch, normalize(mean_ND, dim=-1), strict=True))
        return torch.stack([vectors[i] for i in range(len(texts))])

    def _tokens(self, text: str) -> list[int]:
        """The ids of a text, cut; a blank text is one padding token."""
        found: Any = self.tokenizer(text, truncation=True, max_length=self.max_tokens)
        return found["input_ids"] or [self.tokenizer.pad_token_id or 0]

    def settings(self) -> dict[str, Any]:
        """What the encoder is built from again, as it is written beside its weights."""
        return {
            "encoder": self.name,
            "rank": self.rank,
            "max_tokens": self.max_tokens,
            "layers": self.layers,
        }

    def merge(self) -> None:
        """Add the LoRA matrices into the weights, so that they cost nothing in use."""
        layers: Any = [part for part in self.modules() if hasattr(part, "lora_A")]
        for layer in layers:
            layer.merge()


def stack_of(encoder: Any, name: str) -> tuple[Any, str]:
    """What holds the layers of an encoder or a decoder, and the name of its list of them."""
    stack: Any = getattr(encoder, "encoder", encoder)
    for of_layers in ("layer", "layers"):
        if hasattr(stack, of_layers):
            return stack, of_layers
    raise UserError(
        f"{name}: the layers of this encoder cannot be cut or frozen; set layers and "
        "frozen_layers to 0."
    )


def cut(encoder: Any, layers: int, name: str) -> None:
    """Keep the first so many layers of an encoder, in place."""
    stack, of_layers = stack_of(encoder, name)
    there = getattr(stack, of_layers)
    if not 0 < layers <= len(there):
        raise UserError(f"{name} has {len(there)} layers, so layers is 0 to {len(there)}.")
    setattr(stack, of_layers, there[:layers])
    if stack is encoder:  # a decoder counts its layers itself
        encoder.config.num_hidden_layers = layers


def upper_layers(encoder: Any, frozen: int, name: str) -> nn.Module:
    """The layers above the frozen ones; with none frozen, the whole encoder."""
    if not frozen:
        whole: nn.Module = encoder
        return whole
    stack, of_layers = stack_of(encoder, name)
    there: nn.ModuleList = getattr(stack, of_layers)
    if not 0 < frozen < len(there):
        raise UserError(f"{name} has {len(there)} layers, so frozen_layers is below {len(there)}.")
    return there[frozen:]  # the same layers, in a list of their own


def ready(module: Any) -> Any:
    """A loaded module for use alone: frozen, and all of it where its encoder is."""
    module.requires_grad_(False).eval()
    return module.to(next(module.encode.encoder.parameters()).device)


def trained_names(module: nn.Module) -> list[str]:
    """What differs from the pretrained encoder: LoRA matrices, heads, and the heads' buffers."""
    names = [name for name, _ in (*module.named_parameters(), *module.named_buffers())]
    return [name for name in names if ".lora_" in name or "encode." not in name]


def trained_tensors(module: nn.Module, dtype: torch.dtype = torch.float16) -> dict[str, Tensor]:
    """What was trained, in half precision. A module whose LoRA is merged cannot be saved again."""
    if any(getattr(part, "merged", False) for part in module.modules()):
        raise ValueError("the LoRA matrices are merged into the weights already")
    state = module.state_dict()
    return {
        name: state[name].detach().to("cpu", dtype).contiguous() for name in trained_names(module)
    }


def load_trained(module: nn.Module, tensors: dict[str, Tensor]) -> str | None:
    """Put saved tensors in their places; what does not fit, if anything does not."""
    state, names = module.state_dict(), trained_names(module)
    for name in sorted({*names, *tensors}):
        if name not in tensors or name not in names:
            return f"{name} is in {'its settings' if name in names else 'its weights'} alone"
        if state[name].shape != tensors[name].shape:
            return f"{name} has another shape"
    module.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, strict=False)
    return None


def widened(module: nn.Module, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Saved LoRA matrices of a smaller rank, in the module's rank; what they compute is the same.

    A gets the module's own rows, B gets zeros. This holds as alpha is always twice the rank.
    """
    wide, own = dict(tensors), module.state_dict()
    for name in tensors.keys() & own.keys():
        saved, fresh = tensors[name], own[name]
        if ".lora_A." in name and saved.shape[0] < fresh.shape[0]:
            rows = fresh[saved.shape[0] :].to(saved)
            wide[name] = torch.cat([saved, rows])
        elif ".lora_B." in name and saved.shape[1] < fresh.shape[1]:
            more = fresh.shape[1] - saved.shape[1]
            wide[name] = torch.cat([saved, saved.new_zeros(len(saved), more)], dim=1)
    return wide


def fill(
    module: nn.Module, weights: Path, settings: str = "settings", *, widen: bool = False
) -> None:
    """Put the weights of a file in their places; weights of another module are refused.

    settings: the file that the module was built from, for the message. widen: LoRA matrices of a
    smaller rank are taken too, to go on training from them.
    """
    tensors = load_tensors(weights)
    if misfit := load_trained(module, widened(module, tensors) if widen else tensors):
        raise UserError(
            f"{weights.parent}: weights and {settings} do not fit each other: {misfit}."
        )
