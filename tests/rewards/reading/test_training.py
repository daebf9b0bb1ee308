"""The loss of a block by hand, and that it can be learnt."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from rewards.reading.blocks import Answer, Block
from rewards.reading.reader import SentenceReader
from rewards.reading.training import FAR, FORM_WEIGHT, BlockLoss, closed, form_loss
from tests.rewards.reading.tiny import write_tiny_bert


def test_a_misfit_stands_for_choice_under_the_post_of_its_owner_alone() -> None:
    assert closed(2, 5, [1, 0]).tolist() == [[0, 0, 0, FAR, 0], [0, 0, 0, 0, FAR]]
    assert closed(3, 4, [1]).tolist() == [[0, 0, 0, FAR], [0, 0, 0, 0], [0, 0, 0, FAR]]
    assert closed(2, 3, []).tolist() == [[0, 0, 0]] * 2


def log_loss(probability: float) -> float:
    return -math.log(probability)


def test_the_loss_of_form_by_hand() -> None:
    """Odds of some: 3 for the two sentences' first mechanism, 1 elsewhere; of strong: 4 and 1/4.
    The sentence at place 1 is not known and must not count."""
    three, four = math.log(3), math.log(4)
    form_SF = torch.tensor(
        [
            [three, 0.0, 0.0, four, 9.0, 9.0],
            [9.0, 9.0, 9.0, 9.0, 9.0, 9.0],
            [three, 0.0, 0.0, -four, 9.0, 9.0],
        ]
    )
    found = form_loss(form_SF, [(0, (2, 0, 0)), (2, (1, 0, 0))])
    # Some: right with 3/4 twice, four times 1/2. Strong where there is some: right with 4/5 twice.
    some = (2 * log_loss(3 / 4) + 4 * log_loss(1 / 2)) / 6
    assert found.item() == pytest.approx(some + log_loss(4 / 5), rel=1e-5)


def test_strong_is_not_asked_for_where_there_is_nothing() -> None:
    form_SF = torch.tensor([[0.0, 0.0, 0.0, 50.0, 50.0, 50.0]])
    assert form_loss(form_SF, [(0, (0, 0, 0))]).item() == pytest.approx(log_loss(1 / 2))


class Toy(nn.Module):
    """A reader of two topics: fits are log 3 on the same topic and 0 on another."""

    def __init__(self, worth: float = 0.0) -> None:
        super().__init__()
        self.bias = worth

    def encode(self, texts: list[str]) -> Tensor:
        return torch.tensor([[1.0, 0.0] if "dog" in text else [0.0, 1.0] for text in texts])

    def fits(self, posts_ND: Tensor, sentences_ND: Tensor) -> Tensor:
        return math.log(3) * posts_ND @ sentences_ND.T

    def worth(self, sentences_SD: Tensor) -> Tensor:
        return self.bias * sentences_SD[:, :1]

    def form(self, sentences_SD: Tensor) -> Tensor:
        return torch.zeros(len(sentences_SD), 6)

    def need(self, posts_PD: Tensor) -> Tensor:
        return math.log(3) * torch.ones(len(posts_PD), 1)


BLOCK = Block(
    answers=(
        Answer("My dog died.", "Poor dog.", misfits=("A dog, how fun!",)),
        Answer("I failed.", "Poor you.", (1, 0, 0)),
    ),
    decoys=(("I see.", (0, 0, 0)),),
    calm_posts=("Nice day.",),
)
REST = (
    FORM_WEIGHT * (log_loss(1 / 2) + log_loss(1 / 2)) + (2 * log_loss(3 / 4) + log_loss(1 / 4)) / 3
)


@pytest.mark.parametrize("worth", [0.0, math.log(2)])
def test_the_loss_of_a_block_by_hand(worth: float) -> None:
    # Sentences: Poor dog, Poor you, I see, and the misfit, which only the first post may choose.
    dogs = math.exp(worth)  # what worth multiplies both dog sentences with
    first = 3 * dogs / (3 * dogs + 1 + 1 + 3 * dogs)
    second = 3 / (dogs + 3 + 3)
    choice = (log_loss(first) + log_loss(second)) / 2
    back = log_loss(3 / 4)  # sentence → post: among the two posts, without worth
    total, count = BlockLoss(Toy(worth))([BLOCK])  # type: ignore[arg-type]
    assert count == 2
    assert total.item() == pytest.approx(2 * (choice + back + REST), rel=1e-5)


def test_blocks_are_weighed_by_their_answers() -> None:
    small = Block(BLOCK.answers[1:], BLOCK.decoys, BLOCK.calm_posts)
    loss = BlockLoss(Toy())  # type: ignore[arg-type]
    (one, _), (two, _), (both, count) = loss([BLOCK]), loss([small]), loss([BLOCK, small])
    assert count == 3
    assert both.item() == pytest.approx(one.item() + two.item())


def test_a_block_can_be_learnt(tmp_path: Path) -> None:
    reader = SentenceReader(str(write_tiny_bert(tmp_path)), rank=2, max_tokens=32)
    loss = BlockLoss(reader)
    trained = {name: p for name, p in reader.named_parameters() if p.requires_grad}
    optimizer = torch.optim.Adam(trained.values(), lr=0.02)
    reader.eval()
    losses = []
    for _ in range(30):
        total, count = loss([BLOCK])
        losses.append(total.item() / count)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    # Mean pooling passes by BERT's pooler; everything else learns.
    assert all(p.grad is not None for name, p in trained.items() if "pooler" not in name)
    assert losses[-1] < losses[0] / 2
