"""How a language model is loaded, beside its name: attention, 4-bit weights, compilation.

options = ModelOptions(attention="eager")
options.check()                                      # in milliseconds, before anything is loaded
model, tokenizer = load_causal("smollm2-135m", options=options)
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from rewriting.errors import UserError
from rewriting.runtime.settings import setting

if TYPE_CHECKING:
    import torch

ATTENTIONS: Final = ("eager", "sdpa", "flash_attention_2")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The defaults load a model as transformers does."""

    attention: str = setting(
        "",
        "Implementation of attention: eager, sdpa or flash_attention_2 (a GPU and the package "
        "flash-attn); '': the library's own choice.",
    )
    load_in_4bit: bool = setting(
        False,
        "Load the frozen language model in 4 bits (NF4; needs a GPU and the package bitsandbytes) "
        "and train the adapter on it.",
    )
    compile: bool = setting(
        False,
        "Compile the language model with torch.compile, which takes minutes at the start of a run.",
    )

    def check(self, *, whole_model: bool = False) -> None:
        """Raise where this cannot work here. whole_model: it is trained, not an adapter on it."""
        if self.attention not in ("", *ATTENTIONS):
            raise UserError(f"attention is {', '.join(ATTENTIONS)} or '', not {self.attention!r}.")
        if self.attention == "flash_attention_2":
            _check_flash_attention()
        if self.load_in_4bit:
            _check_4bit()
        if self.load_in_4bit and whole_model:
            raise UserError(
                "weights in 4 bits cannot be trained: leave load_in_4bit out, or train an adapter."
            )

    def loading(self, dtype: torch.dtype, device: torch.device) -> dict[str, Any]:
        """The arguments of `from_pretrained` for these options."""
        self.check()
        told: dict[str, Any] = {"attn_implementation": self.attention} if self.attention else {}
        if self.load_in_4bit:
            from transformers import BitsAndBytesConfig

            told["quantization_config"] = BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
            )
            told["device_map"] = {"": device}  # a model in 4 bits cannot be moved later
        return told

    def compiled(self, model: Any) -> None:
        """Compile what reads and decodes, in place: names of weights and adapters stay."""
        if self.compile:
            # Rows grow by a token at every step: one kernel for all lengths, not one for each.
            model.get_decoder().compile(dynamic=True)


DEFAULT: Final = ModelOptions()


def _check_flash_attention() -> None:
    import torch

    if find_spec("flash_attn") is None or not torch.cuda.is_available():
        raise UserError(
            "flash_attention_2 needs a GPU and the package flash-attn: pip install flash-attn, or "
            "set attention to sdpa."
        )


def _check_4bit() -> None:
    import torch

    if find_spec("bitsandbytes") is None:
        raise UserError(
            "load_in_4bit needs the package bitsandbytes: pip install bitsandbytes, or leave "
            "load_in_4bit out."
        )
    # On a CPU, bitsandbytes 0.50 repacks the weights for its own kernel, which gives no gradients.
    if not torch.cuda.is_available():
        raise UserError("load_in_4bit needs a GPU, and there is none: leave load_in_4bit out.")
