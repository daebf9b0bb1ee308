"""Rows that begin alike are read once as far as they do, with the numbers that they have alone."""

from typing import Any

import pytest
import torch

from rewriting.runtime.language_models.backbone import Backbone
from rewriting.runtime.language_models.log_probs import continuation_log_probs
from rewriting.runtime.language_models.token_trees import (
    grown,
    inputs_of,
    reads_trees,
    tree_log_probs,
    trees_of,
)
from rewriting.runtime.models.attention import NAME, share_keys
from tests.tiny_lm import tiny_llama, tiny_tokenizer

REWRITES = [
    "I am sorry. Call me.",
    "I am sorry. How are you? Call me.",
    "I am sorry. How is he? Call me.",
    "That is hard. I am sorry. Call me.",
    "I am sorry.",
]


def test_a_tree_by_hand() -> None:
    r"""1 - 2 - 3, and after 2 also 4 - 3: the two 3 are different places."""
    tree = grown((7, 9), [(1, 2, 3), (1, 2, 4, 3)])
    assert tree.tokens == (1, 2, 3, 4, 3)
    assert tree.parents == (-1, 0, 1, 1, 3)
    assert tree.paths == ((0, 1, 2), (0, 1, 3, 4))
    inputs = inputs_of([tree, grown((0,), [(5,)])], tiny_llama())
    assert inputs["input_ids"].tolist() == [[1, 2, 3, 4, 3], [5, 0, 0, 0, 0]]
    assert inputs["position_ids"].tolist() == [[0, 1, 2, 2, 3], [0, 0, 0, 0, 0]]
    sees = (inputs["attention_mask"][:, 0] == 0).int().tolist()
    assert sees[0] == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 1],
    ]
    assert sees[1] == torch.eye(5).int().tolist()


def test_rows_share_a_tree_where_they_begin_alike_and_it_has_room() -> None:
    pairs = [([0], [1, 2, 3, 4, 5]), ([0], [1, 2, 3, 9, 9]), ([0], [1, 7, 7, 7, 7])]
    assert [tree.rows for tree in trees_of(pairs, 100)] == [(0, 1), (2,)]
    assert [len(tree.tokens) for tree in trees_of(pairs, 100)] == [6, 5]
    assert [tree.rows for tree in trees_of(pairs, 5)] == [(0,), (1,), (2,)]


@pytest.mark.parametrize("plain_head", [True, False])
def test_a_tree_gives_the_numbers_of_its_rows(plain_head: bool) -> None:
    backbone = Backbone(tiny_llama(), tiny_tokenizer())
    pairs = [backbone.fitted([], backbone.tokens(text)) for text in REWRITES]
    longer = [backbone.start_token, *backbone.tokens("I am sorry. ")]
    pairs.append((longer, backbone.tokens("Call")))
    trees = trees_of(pairs, 1000)
    assert len(trees) == 2
    with torch.no_grad():
        found = tree_log_probs(backbone.model, trees, pairs, plain_head=plain_head)
        expected = continuation_log_probs(backbone.model, pairs)
    for row, values in enumerate(expected):
        assert torch.allclose(found[row], values, atol=1e-5)


def test_a_backbone_reads_what_rewrites_share_once(monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = Backbone(tiny_llama(), tiny_tokenizer())
    expected = [backbone.token_log_probs([""], [text])[0] for text in REWRITES]
    read: list[int] = []
    decoder = backbone.model.get_decoder()
    forward = decoder.forward

    def counted(*inputs: Any, **named: Any) -> Any:
        read.append(named["input_ids"].numel())
        return forward(*inputs, **named)

    assert backbone.reads_trees
    monkeypatch.setattr(decoder, "forward", counted)
    found = backbone.token_log_probs([""] * len(REWRITES), REWRITES)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    assert sum(read) < 0.8 * sum(map(len, REWRITES))
    backbone.max_batch_tokens = 1  # row by row
    read.clear()
    backbone.token_log_probs([""] * len(REWRITES), REWRITES)
    assert sorted(read) == sorted(map(len, REWRITES))


def test_models_that_cannot_read_trees_are_found_out() -> None:
    model = tiny_llama()
    assert reads_trees(model)
    model.config.sliding_window = 8
    assert not reads_trees(model)
    model.config.sliding_window = None
    model.config._attn_implementation = "flash_attention_2"
    assert not reads_trees(model)


def test_a_model_that_shares_its_keys_reads_trees() -> None:
    model = tiny_llama()
    share_keys(model)
    assert model.config._attn_implementation == NAME
    assert reads_trees(model)


def test_a_gpt2_reads_trees_too() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=20, n_positions=32, n_embd=16, n_layer=2, n_head=2)
    assert reads_trees(GPT2LMHeadModel(config).eval())
