"""Advantages, losses and their gradients against numbers worked out by hand."""

import math

import pytest
import torch

from policies.training.objective import (
    MovingBaseline,
    clipped,
    credit_of_positions,
    entropy_bonus,
    leave_one_out,
    normalised,
    policy_gradient,
)

NAN = math.nan
MASK = torch.tensor([[True, True], [True, False]])
ADVANTAGE = torch.tensor([2.0, -1.0])


def test_leave_one_out_by_hand() -> None:
    advantages = leave_one_out(torch.tensor([[1.0, 2.0, 6.0], [5.0, 5.0, 5.0]]))
    assert advantages.tolist() == [[1 - 4, 2 - 3.5, 6 - 1.5], [0, 0, 0]]


def test_a_sample_without_reward_teaches_nothing() -> None:
    advantages = leave_one_out(torch.tensor([[1.0, NAN, 3.0], [7.0, NAN, NAN], [NAN, NAN, NAN]]))
    assert advantages.tolist() == [[-2, 0, 2], [0, 0, 0], [0, 0, 0]]


def test_a_single_sample_has_nothing_to_be_compared_with() -> None:
    assert leave_one_out(torch.tensor([[3.0], [4.0]])).tolist() == [[0], [0]]


def test_a_position_has_the_credit_of_its_mean_and_a_sentence_that_of_beating_the_others() -> None:
    place, own = credit_of_positions(torch.tensor([[1.0, 3.0, 5.0, 9.0]]), 2)
    assert place.tolist() == [[2 - 7, 2 - 7, 7 - 2, 7 - 2]]
    assert own.tolist() == [[1 - 3, 3 - 1, 5 - 9, 9 - 5]]
    place, own = credit_of_positions(torch.tensor([[1.0, NAN, 5.0, 9.0]]), 2)
    assert place.tolist() == [[1 - 7, 0, 7 - 1, 7 - 1]]
    assert own.tolist() == [[0, 0, 5 - 9, 9 - 5]]


def test_the_moving_baseline_by_hand() -> None:
    baseline = MovingBaseline(decay=0.75)
    # Nothing before: each against the others of the step.
    assert baseline.advantages(torch.tensor([[1.0], [2.0], [6.0]])).tolist() == [
        [-3],
        [-1.5],
        [4.5],
    ]
    assert baseline.value == 3.0
    assert baseline.advantages(torch.tensor([[5.0, 9.0]])).tolist() == [[2, 6]]
    assert baseline.value == 0.75 * 3 + 0.25 * 7
    assert baseline.advantages(torch.tensor([[NAN, 5.0]])).tolist() == [[0, 1]]
    value = baseline.value
    assert baseline.advantages(torch.tensor([[NAN]])).tolist() == [[0]]
    assert baseline.value == value


def test_the_baseline_is_part_of_a_checkpoint() -> None:
    before, after = MovingBaseline(), MovingBaseline()
    after.load_state_dict(before.state_dict())
    assert after.value is None
    before.advantages(torch.tensor([[1.0, 2.0]]))
    after.load_state_dict(before.state_dict())
    assert after.value == 1.5
    with pytest.raises(ValueError, match="decay"):
        MovingBaseline(1.0)


def test_normalised_over_the_whole_batch() -> None:
    found = normalised(torch.tensor([[3.0, -3.0], [0.0, 0.0]]))
    assert found.flatten().tolist() == pytest.approx([math.sqrt(2), -math.sqrt(2), 0, 0])
    assert normalised(torch.zeros(2, 2)).tolist() == [[0, 0], [0, 0]]


def log_probs(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows).log().requires_grad_()


def test_policy_gradient_by_hand() -> None:
    log_prob = log_probs([[0.5, 0.25], [0.5, 0.9]])
    loss = policy_gradient(log_prob, ADVANTAGE, MASK)
    assert loss.item() == pytest.approx(-2 * math.log(0.125) + math.log(0.5))
    loss.backward()
    # Descending makes the good action's tokens likelier, the bad one's less likely.
    assert log_prob.grad.tolist() == [[-2, -2], [1, 0]]


def test_masked_places_may_hold_anything() -> None:
    log_prob = torch.tensor([[-1.0, -1.0], [-2.0, -math.inf]], requires_grad=True)
    policy_gradient(log_prob, ADVANTAGE, MASK).backward()
    assert log_prob.grad.tolist() == [[-2, -2], [1, 0]]
    log_prob.grad = None
    old = torch.tensor([[-1.0, -1.0], [-2.0, 0.0]])
    clipped(log_prob, old, ADVANTAGE, MASK, 0.2)[0].backward()
    assert log_prob.grad.tolist() == [[-2, -2], [1, 0]]


def test_clipped_is_the_policy_gradient_where_nothing_has_moved() -> None:
    log_prob = log_probs([[0.5, 0.25], [0.5, 1.0]])
    loss, _ = clipped(log_prob, log_prob.detach(), ADVANTAGE, MASK, 0.2)
    assert loss.item() == pytest.approx(-(2 + 2 - 1))
    loss.backward()
    assert log_prob.grad.tolist() == [[-2, -2], [1, 0]]


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.1, 2.0, -2.2, -2.2),  # inside: ρ·A, whose slope by log π is ρ·A
        (1.5, 2.0, -2.4, 0.0),  # gone far enough up
        (0.5, 2.0, -1.0, -1.0),  # went the wrong way: not clipped
        (0.5, -2.0, 1.6, 0.0),  # gone far enough down
        (1.5, -2.0, 3.0, 3.0),  # went the wrong way
    ],
)
def test_clipped_by_hand(ratio: float, advantage: float, loss: float, slope: float) -> None:
    old = torch.tensor([[math.log(0.4)]])
    log_prob = (old + math.log(ratio)).requires_grad_()
    found, num_clipped = clipped(
        log_prob, old, torch.tensor([advantage]), torch.tensor([[True]]), 0.2
    )
    found.backward()
    assert found.item() == pytest.approx(loss)
    assert log_prob.grad.item() == pytest.approx(slope)
    assert num_clipped == (slope == 0)


def test_padding_is_not_counted_as_clipped() -> None:
    log_prob = torch.tensor([[0.0, 5.0]])
    mask = torch.tensor([[True, False]])
    _, num_clipped = clipped(log_prob, torch.zeros(1, 2), torch.tensor([1.0]), mask, 0.2)
    assert num_clipped == 0


def test_descending_the_bonus_raises_the_entropy() -> None:
    entropy = torch.tensor([0.5, 1.0], requires_grad=True)
    loss = entropy_bonus(entropy, 0.1)
    loss.backward()
    assert loss.item() == pytest.approx(-0.15)
    assert entropy.grad.tolist() == pytest.approx([-0.1, -0.1])


def test_shapes_must_fit() -> None:
    with pytest.raises(ValueError, match="shapes differ"):
        policy_gradient(torch.zeros(2, 3), ADVANTAGE, MASK)
    with pytest.raises(ValueError, match="shapes differ"):
        clipped(torch.zeros(2, 2), torch.zeros(2, 3), ADVANTAGE, MASK, 0.2)
