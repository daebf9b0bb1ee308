"""Log-probabilities are exact whatever the batch; roles are switched and change nothing else."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from rewriting.errors import UserError
from rewriting.runtime.batches import batches_by_length
from rewriting.runtime.language_models.backbone import Backbone
from rewriting.runtime.language_models.log_probs import continuation_log_probs
from tests.tiny_lm import tiny_llama, tiny_tokenizer

PREFIXES = ["", "I feel ", "Someone wrote:\nhelp\n\n", "", "x"]
CONTINUATIONS = ["Hi.", "so sad today", "No.", "a much longer continuation than the others", "y"]


@pytest.fixture
def backbone() -> Backbone:
    return Backbone(tiny_llama(), tiny_tokenizer(), name="tiny")


def one_by_one(backbone: Backbone, prefix: str, continuation: str) -> list[float]:
    """Each token's log-probability from a forward pass of its own over all that is before it."""
    before = backbone.tokens(prefix) or [backbone.start_token]
    found = []
    for token in backbone.tokens(continuation):
        with torch.no_grad():
            logits = backbone.model(torch.tensor([before])).logits[0, -1]
        found.append(float(logits.double().log_softmax(-1)[token]))
        before = [*before, token]
    return found


def change(backbone: Backbone, role: str) -> None:
    """Give a role weights of its own: a new adapter does nothing."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in backbone.model.named_parameters():
            if f".{role}." in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)


def flat(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat(list(rows))


def test_every_token_counts_the_first_included(backbone: Backbone) -> None:
    rows = backbone.token_log_probs(PREFIXES, CONTINUATIONS)
    for row, prefix, continuation in zip(rows, PREFIXES, CONTINUATIONS, strict=True):
        assert len(row) == len(continuation)  # a character, a token
        # Of seven digits that float32 has, how the sixth rounds differs between processors.
        assert row.tolist() == pytest.approx(one_by_one(backbone, prefix, continuation), rel=1e-5)


@pytest.mark.parametrize("max_batch_tokens", [1, 60, 10_000])
def test_batch_size_and_order_change_nothing(backbone: Backbone, max_batch_tokens: int) -> None:
    expected = backbone.token_log_probs(PREFIXES, CONTINUATIONS)
    backbone.max_batch_tokens = max_batch_tokens
    rows = backbone.token_log_probs(PREFIXES[::-1], CONTINUATIONS[::-1])[::-1]
    assert torch.allclose(flat(rows), flat(expected), atol=1e-5)


def test_a_capped_head_takes_the_longer_way(backbone: Backbone) -> None:
    pairs = [([0], [5, 6, 7]), ([3, 4], [8])]
    expected = flat(continuation_log_probs(backbone.model, pairs))
    rows = continuation_log_probs(backbone.model, pairs, plain_head=False)
    assert torch.allclose(flat(rows), expected, atol=1e-5)
    assert backbone.plain_head
    from transformers import CohereConfig, CohereForCausalLM

    shape: dict[str, Any] = {"vocab_size": 20, "hidden_size": 16, "intermediate_size": 16}
    heads: dict[str, Any] = {"num_hidden_layers": 1, "num_attention_heads": 2}
    config = CohereConfig(**shape, **heads, logit_scale=0.5, pad_token_id=0)
    assert not Backbone(CohereForCausalLM(config), tiny_tokenizer()).plain_head


def test_gradients_reach_an_adapter_and_nothing_else(backbone: Backbone) -> None:
    parameters = backbone.add("policy", rank=2)
    with backbone.role("policy") as model:
        flat(continuation_log_probs(model, [([0], [5, 6])])).sum().backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in parameters)
    trained = {id(p) for p in parameters}
    assert all(p.grad is None for p in backbone.model.parameters() if id(p) not in trained)


def test_roles_differ_nest_and_leave_no_trace(backbone: Backbone) -> None:
    bare = flat(backbone.token_log_probs(PREFIXES, CONTINUATIONS))
    trained = backbone.add("policy", rank=2)
    backbone.add("other", rank=2)
    with backbone.role("policy"):
        assert torch.equal(flat(backbone.token_log_probs(PREFIXES, CONTINUATIONS)), bare)
    change(backbone, "policy")
    with backbone.role("policy"):
        policy = flat(backbone.token_log_probs(PREFIXES, CONTINUATIONS))
        with backbone.role(None):
            assert torch.equal(flat(backbone.token_log_probs(PREFIXES, CONTINUATIONS)), bare)
        assert torch.equal(flat(backbone.token_log_probs(PREFIXES, CONTINUATIONS)), policy)
        assert all(parameter.requires_grad for parameter in trained)
    assert (policy - bare).abs().max() > 1e-3
    assert torch.equal(flat(backbone.token_log_probs(PREFIXES, CONTINUATIONS)), bare)
    assert all(parameter.requires_grad for parameter in trained)


def test_a_saved_adapter_gives_the_same_numbers(backbone: Backbone, tmp_path: Path) -> None:
    backbone.add("policy", rank=2)
    change(backbone, "policy")
    backbone.save("policy", tmp_path / "adapter")
    assert sorted(path.name for path in (tmp_path / "adapter").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    layers = config["target_modules"]  # a set would stand there in another order in each process
    assert layers == sorted(layers)
    assert len(layers) > 3
    assert config["inference_mode"]
    fresh = Backbone(tiny_llama(), tiny_tokenizer(), name="tiny")
    fresh.attach("a", tmp_path / "adapter")
    fresh.attach("b", tmp_path / "adapter")
    fresh.attach("b", tmp_path / "adapter")  # nothing new
    assert not any(parameter.requires_grad for parameter in fresh.model.parameters())
    with backbone.role("policy"):
        expected = flat(backbone.token_log_probs(PREFIXES, CONTINUATIONS))
    for role in ("a", "b"):
        with fresh.role(role):
            assert torch.equal(flat(fresh.token_log_probs(PREFIXES, CONTINUATIONS)), expected)


def test_calls_are_remembered_for_frozen_roles_only(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[int] = []
    batched = backbone._batched

    def counting(prefixes: Any, continuations: Any) -> Any:
        scored.append(len(continuations))
        return batched(prefixes, continuations)

    monkeypatch.setattr(backbone, "_batched", counting)
    first = backbone.scores(["", "", "a"], ["Hi.", "Hi.", "Hi."])
    assert backbone.scores(["", "", "a"], ["Hi.", "Hi.", "Hi."]) == first
    assert first[0] == first[1] != first[2]
    assert scored == [2]
    # Never a part of a call: the batch, and with it the last bit, follows from the call alone.
    backbone.scores(["", "a"], ["Hi.", "Oh."])
    assert scored == [2, 2]
    backbone.add("policy", rank=2)
    before = backbone.scores([""], ["Hi."], "policy")
    change(backbone, "policy")
    assert backbone.scores([""], ["Hi."], "policy") != before


def test_a_blank_text_is_scored_as_the_end(backbone: Backbone) -> None:
    (blank,) = backbone.scores(["Help."], [" "])
    with torch.no_grad():
        logits = backbone.model(torch.tensor([backbone.tokens("Help.")])).logits[0, -1]
    assert blank.num_tokens == 1
    assert blank.total == pytest.approx(float(logits.log_softmax(-1)[0]), abs=1e-5)
    assert [len(row) for row in backbone.token_log_probs(["", "a"], ["", "b"])] == [0, 1]
    assert backbone.scores([], []) == []


def test_text_cannot_smuggle_in_a_special_token(backbone: Backbone) -> None:
    assert 0 not in backbone.tokens("over </s> now")


def test_what_does_not_fit_is_cut_at_the_far_ends(backbone: Backbone) -> None:
    prefix, continuation = backbone.fitted(list(range(300)), [7] * 6)
    assert (prefix[-1], len(prefix) + len(continuation)) == (299, backbone.max_length)
    prefix, continuation = backbone.fitted([1, 2], [7] * 300)
    assert (prefix, len(continuation)) == ([2], backbone.max_length - 1)


def test_mistakes_with_roles_are_named(backbone: Backbone, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no adapter folder"):
        backbone.attach("a", tmp_path)
    larger = Backbone(tiny_llama(layers=3), tiny_tokenizer(), name="larger")
    larger.add("policy", rank=2)
    larger.save("policy", tmp_path)
    with pytest.raises(UserError, match="does not fit this model; it is for larger"):
        backbone.attach("a", tmp_path)
    with pytest.raises(ValueError, match="already"):
        larger.attach("policy", tmp_path)
    with pytest.raises(ValueError, match="no role 'b'"), backbone.role("b"):
        pass
    backbone.add("policy", rank=2)
    with pytest.raises(ValueError, match="already"):
        backbone.add("policy")


def test_batches_hold_every_row_once_within_the_budget() -> None:
    lengths = [5, 1, 9, 3, 3, 30]
    batches = list(batches_by_length(lengths, 10))
    assert sorted(row for batch in batches for row in batch) == list(range(6))
    assert all(
        len(batch) * max(lengths[row] for row in batch) <= 10 for batch in batches if len(batch) > 1
    )
