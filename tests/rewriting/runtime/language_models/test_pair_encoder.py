"""Sentences read together with their post: who sees whom, and that company changes nothing."""

from pathlib import Path

import pytest
import torch

from rewriting.errors import UserError
from rewriting.runtime.files.tensors import save_tensors
from rewriting.runtime.language_models.pair_encoder import (
    PADDING,
    PairEncoder,
    lasts,
    means,
    padded,
    visible,
)
from rewriting.runtime.language_models.tuned_encoder import fill, trained_tensors
from tests.rewards.reading.tiny import write_tiny_bert, write_tiny_mpnet, write_tiny_qwen

POST, OTHER = "My dog died.", "I got the job, and it starts in May."
SENTENCES = ["Poor dog.", "Why me?", "I am so sorry that it is so."]


@pytest.fixture(scope="module", params=["bert", "mpnet", "qwen"])
def encode(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PairEncoder:
    write = {"bert": write_tiny_bert, "mpnet": write_tiny_mpnet, "qwen": write_tiny_qwen}[
        request.param
    ]
    folder = write(tmp_path_factory.mktemp(request.param))
    return PairEncoder(str(folder), rank=0, max_tokens=48).eval()


@torch.no_grad()
def test_a_sentence_does_not_see_its_company(encode: PairEncoder) -> None:
    together = encode([(OTHER, SENTENCES[:1]), (POST, SENTENCES)])
    alone = [encode([(POST, [text])])[0] for text in SENTENCES]
    assert together.shape == (4, encode.width)
    for row, vector in enumerate(alone, start=1):
        torch.testing.assert_close(together[row], vector, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_sentence_sees_its_post(encode: PairEncoder) -> None:
    here, there = encode([(POST, SENTENCES[:1]), (OTHER, SENTENCES[:1])])
    assert (here - there).abs().max() > 1e-3


@torch.no_grad()
def test_a_post_is_read_as_if_it_stood_alone(encode: PairEncoder) -> None:
    packed = encode.pack(POST, SENTENCES)
    count = packed.parts.count(0)
    ids, parts, positions = (
        padded([row], 0) for row in (packed.ids, packed.parts, packed.positions)
    )
    inside = encode._states(ids, positions, visible(parts))[0, :count]
    plain = encode.encoder(
        input_ids=ids[:, :count], attention_mask=torch.ones(1, count, dtype=torch.long)
    ).last_hidden_state[0]
    torch.testing.assert_close(inside, plain, rtol=1e-4, atol=1e-5)


def test_who_sees_whom_by_hand() -> None:
    # Two tokens of a post, one of each of two sentences, one of padding.
    (seen,) = visible(torch.tensor([[0, 0, 1, 2, PADDING]])).int().tolist()
    assert seen == [
        [1, 1, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 0, 0],
    ]


def test_positions_go_on_where_the_post_ends(encode: PairEncoder) -> None:
    packed = encode.pack("ab", ["c", "de"])
    assert packed.parts == (0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2)
    assert packed.positions == (0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 7)


def test_the_mean_of_each_sentence_by_hand() -> None:
    states = torch.tensor([[9.0], [1.0], [3.0], [5.0], [7.0]])
    found = means(states, torch.tensor([0, 1, 1, 2, PADDING]), 2)
    assert found.tolist() == [[2.0], [5.0]]


def test_the_last_token_of_each_sentence_by_hand() -> None:
    states = torch.tensor([[9.0], [1.0], [3.0], [5.0], [7.0]])
    assert lasts(states, torch.tensor([0, 1, 1, 2, PADDING]), 2).tolist() == [[3.0], [5.0]]


def test_a_causal_model_can_be_cut_to_its_first_layers(tmp_path: Path) -> None:
    folder = str(write_tiny_qwen(tmp_path))
    whole, half = (PairEncoder(folder, rank=0, max_tokens=48, layers=n).eval() for n in (0, 1))
    assert [whole.encoder.config.num_hidden_layers, half.encoder.config.num_hidden_layers] == [2, 1]
    with torch.no_grad():
        there, here = whole([(POST, SENTENCES)]), half([(POST, SENTENCES)])
    assert (there - here).abs().max() > 1e-3


@torch.no_grad()
def test_long_posts_are_cut_and_nothing_gives_nothing(encode: PairEncoder) -> None:
    first, second = encode([("a" * 48 + "b", ["Oh."]), ("a" * 48 + "c", ["Oh."])])
    torch.testing.assert_close(first, second)
    assert encode([]).shape == (0, encode.width)
    assert encode([("", ["Oh."])]).isfinite().all()


def test_a_saved_encoder_is_trained_further_at_a_higher_rank(tmp_path: Path) -> None:
    folder = str(write_tiny_mpnet(tmp_path / "encoder"))
    narrow, wide = (Held(PairEncoder(folder, rank, max_tokens=48)).eval() for rank in (2, 3))
    with torch.no_grad():
        for parameter in trained_tensors(narrow).values():
            parameter.normal_(0, 0.3, generator=torch.Generator().manual_seed(1))
    narrow.load_state_dict(trained_tensors(narrow), strict=False)
    weights = tmp_path / "weights.safetensors"
    save_tensors(trained_tensors(narrow), weights)
    with pytest.raises(UserError, match="another shape"):
        fill(wide, weights)
    fill(wide, weights, widen=True)
    rows = [(POST, SENTENCES)]
    assert torch.allclose(wide.encode(rows), narrow.encode(rows), atol=1e-5)
    assert any(
        tensor[-1].abs().sum() > 0
        for name, tensor in trained_tensors(wide).items()
        if "lora_A" in name
    )


class Held(torch.nn.Module):
    """An encoder under the name that the functions of tuned_encoder.py look for."""

    def __init__(self, encoder: PairEncoder) -> None:
        super().__init__()
        self.encode = encoder
