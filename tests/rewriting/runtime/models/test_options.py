"""Attention, 4-bit weights and compilation: the same numbers, or one line that says what lacks."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from rewriting.errors import UserError
from rewriting.runtime.language_models.backbone import Backbone
from rewriting.runtime.models import options as model_options
from rewriting.runtime.models.named import load_causal
from rewriting.runtime.models.options import ModelOptions
from tests.tiny_lm import write_tiny_llama

IDS = torch.tensor([[5, 9, 4, 33, 60, 2, 8]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_llama(tmp_path_factory.mktemp("lm"))


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    found: torch.Tensor = model(input_ids=IDS).logits
    return found


def test_the_attention_that_was_asked_for_is_used(folder: Path) -> None:
    found = {}
    for name in ("eager", "sdpa"):
        model, _ = load_causal(str(folder), options=ModelOptions(attention=name))
        # On a CPU `sdpa` is our own one, which shares keys (rewriting/runtime/models/attention.py).
        assert model.config._attn_implementation.startswith(name)
        found[name] = logits(model)
    assert torch.allclose(found["eager"], found["sdpa"], atol=1e-4)
    assert load_causal(str(folder))[0].config._attn_implementation.startswith("sdpa")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "fast"}, "attention is eager, sdpa, flash_attention_2 or '', not 'fast'"),
        ({"attention": "flash_attention_2"}, "flash_attention_2 needs a GPU and the package"),
        ({"load_in_4bit": True}, "load_in_4bit needs the package bitsandbytes: pip install"),
    ],
)
def test_what_cannot_work_is_one_line_before_anything_is_loaded(
    options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_options, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=message) as refused:
        ModelOptions(**options).check()
    assert "\n" not in str(refused.value)


def test_4_bits_are_for_a_gpu_and_a_model_that_is_not_trained_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_options, "find_spec", lambda name: object())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UserError, match="load_in_4bit needs a GPU"):
        ModelOptions(load_in_4bit=True).check()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    ModelOptions(load_in_4bit=True).check()
    with pytest.raises(UserError, match="weights in 4 bits cannot be trained"):
        ModelOptions(load_in_4bit=True).check(whole_model=True)


def test_a_backbone_is_shared_by_those_who_load_it_alike(folder: Path) -> None:
    eager = ModelOptions(attention="eager")
    shared = Backbone.shared(str(folder), options=eager)
    assert Backbone.shared(str(folder), options=ModelOptions(attention="eager")) is shared
    assert Backbone.shared(str(folder)) is not shared


def test_a_compiled_model_gives_the_same_numbers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = CompileCounter()
    # The graphs are run as they are: building kernels of them takes minutes on a busy machine.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counted))
    plain, _ = load_causal(str(folder))
    compiled, _ = load_causal(str(folder), options=ModelOptions(compile=True))
    assert torch.allclose(logits(compiled), logits(plain), atol=1e-4)
    assert counted.frame_count > 0
    assert list(compiled.state_dict()) == list(plain.state_dict())  # no name has changed


@pytest.mark.skipif(
    find_spec("bitsandbytes") is None or not torch.cuda.is_available(),
    reason="needs bitsandbytes and a GPU",
)
def test_an_adapter_is_trained_on_a_model_in_4_bits(folder: Path) -> None:
    backbone = Backbone.load(str(folder), options=ModelOptions(load_in_4bit=True))
    assert type(backbone.model.model.layers[0].mlp.up_proj).__name__ == "Linear4bit"
    weights = backbone.add("policy", rank=2)
    with backbone.role("policy"):
        backbone.model(input_ids=IDS.cuda()).logits.sum().backward()
    assert any(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in weights)
