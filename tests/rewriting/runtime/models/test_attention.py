"""Shared key heads without copies: the same numbers and gradients as transformers' own way."""

from pathlib import Path

import torch

from rewriting.runtime.models.attention import NAME, share_keys
from rewriting.runtime.models.named import load_causal
from tests.tiny_lm import tiny_llama, write_tiny_llama


def test_logits_and_gradients_are_the_same() -> None:
    """In double precision: how float32 rounds differs between processors."""
    model = tiny_llama().double()
    ids_BT = torch.tensor([[5, 6, 7, 8], [9, 10, 0, 0]])
    mask_BT = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        logits = model(input_ids=ids_BT, attention_mask=mask_BT).logits[mask_BT.bool()]
        keys = model.model.layers[0].self_attn.k_proj.weight
        return logits, torch.autograd.grad(logits.square().sum(), keys)[0]

    before = run()
    share_keys(model)
    assert model.config._attn_implementation == NAME
    for ours, theirs in zip(run(), before, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_generation_with_a_cache_is_the_same() -> None:
    model, ids_BT = tiny_llama(), torch.tensor([[5, 6, 7], [0, 0, 9]])
    options = {"attention_mask": (ids_BT > 0).long(), "max_new_tokens": 6, "do_sample": False}
    before = model.generate(ids_BT, **options)
    share_keys(model)
    assert model.generate(ids_BT, **options).tolist() == before.tolist()


def test_only_models_with_shared_keys_change() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_embd=8, n_layer=1, n_head=2))
    share_keys(model)
    assert model.config._attn_implementation == "sdpa"
    eager = tiny_llama()
    eager.set_attn_implementation("eager")
    share_keys(eager)
    assert eager.config._attn_implementation == "eager"


def test_a_saved_model_does_not_know_of_it(tmp_path: Path) -> None:
    model, _ = load_causal(str(write_tiny_llama(tmp_path / "lm")))
    assert model.config._attn_implementation == NAME
    model.save_pretrained(tmp_path / "again")
    assert NAME not in (tmp_path / "again" / "config.json").read_text()
