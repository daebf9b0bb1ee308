"""The pointer: its order of positions, its mask, and what each key is made of."""

import math

import pytest
import torch

from policies.editing.position_head import PositionHead, entropy, in_order, sample_positions
from policies.editing.prompt import Prompt

INF = -math.inf
SHORT = Prompt(tuple(range(5)), boundaries=(1, 3), ends=(2,))
LONG = Prompt(tuple(range(9)), boundaries=(1, 3, 7), ends=(2, 6))
EMPTY = Prompt(tuple(range(4)), boundaries=(2,), ends=())


def test_each_row_has_its_own_order() -> None:
    insert = torch.tensor([[1.0, 2.0, 9.0], [1.0, 2.0, 3.0], [1.0, 9.0, 9.0]])
    replace = torch.tensor([[4.0, 9.0], [4.0, 5.0], [9.0, 9.0]])
    keep = torch.tensor([[6.0], [6.0], [6.0]])
    ordered = in_order(insert, replace, keep, [1, 2, 0])
    assert ordered.tolist() == [
        [1, 2, 4, 6, INF, INF],
        [1, 2, 3, 4, 5, 6],
        [1, 6, INF, INF, INF, INF],
    ]


@pytest.fixture
def head() -> PositionHead:
    torch.manual_seed(0)
    head = PositionHead(6, 4)
    torch.nn.init.normal_(head.keep)
    torch.nn.init.normal_(head.bias)
    return head


def test_a_batch_gives_what_its_rows_give_alone(head: PositionHead) -> None:
    hidden = torch.randn(3, 9, 6)
    together = head(hidden, [SHORT, LONG, EMPTY])
    assert together.shape == (3, 6)
    for row, prompt in enumerate((SHORT, LONG, EMPTY)):
        alone = head(hidden[row : row + 1, : len(prompt.tokens)], [prompt])[0]
        assert torch.allclose(together[row, : len(alone)], alone, atol=1e-6)
        assert (together[row, len(alone) :] == INF).all()


@pytest.mark.parametrize(
    ("token", "moved"),
    [
        (0, set()),
        (1, {0}),  # the boundary before sentence 0
        (2, {0, 3}),  # the end of sentence 0
        (3, {1}),
        (4, set()),  # inside of sentence 1
        (6, {1, 4}),
        (7, {2}),
        (8, {0, 1, 2, 3, 4, 5}),  # the query
    ],
)
def test_a_key_reads_its_own_tokens_alone(head: PositionHead, token: int, moved: set[int]) -> None:
    hidden = torch.randn(1, 9, 6)
    changed = hidden.clone()
    changed[0, token] = torch.randn(6)
    with torch.no_grad():
        difference = (head(hidden, [LONG]) - head(changed, [LONG]))[0].abs()
    assert {place for place in range(6) if difference[place] > 1e-6} == moved


def test_logits_are_float32_for_a_half_model(head: PositionHead) -> None:
    with torch.autocast("cpu", dtype=torch.float16):
        logits = head(torch.randn(1, 5, 6).half(), [SHORT])
    assert logits.dtype == torch.float32


def test_entropy_of_known_distributions() -> None:
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, INF, INF], [3.0, INF, INF, INF]])
    assert entropy(logits).tolist() == pytest.approx([math.log(4), math.log(2), 0.0], abs=1e-6)


def test_gradients_pass_a_masked_position_by(head: PositionHead) -> None:
    logits = head(torch.randn(2, 9, 6), [SHORT, LONG])
    (entropy(logits).sum() + logits.log_softmax(-1)[0, 0]).backward()
    grads = [parameter.grad for parameter in head.parameters()]
    assert all(grad is not None and grad.isfinite().all() for grad in grads)


def test_positions_follow_their_probabilities_whatever_the_padding() -> None:
    row = torch.tensor([0.0, 1.0, 2.0, -1.0])
    probabilities = row.softmax(-1)
    seeds = list(range(4000))
    alone = sample_positions(row.expand(4000, -1), seeds)
    padded = torch.nn.functional.pad(row, (0, 20), value=INF).expand(4000, -1)
    assert sample_positions(padded, seeds) == alone
    shares = torch.bincount(torch.tensor(alone), minlength=4) / 4000
    # Four standard deviations of a share of 4,000 draws are at most 0.0317.
    assert torch.allclose(shares, probabilities, atol=0.0317)
