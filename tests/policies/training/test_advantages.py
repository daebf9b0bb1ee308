"""Advantages against numbers worked out by hand."""

import math

import pytest
import torch

from policies.training.advantages import MovingBaseline, leave_one_out, normalised

NAN = math.nan


def test_leave_one_out_by_hand() -> None:
    advantages = leave_one_out(torch.tensor([[1.0, 2.0, 6.0], [5.0, 5.0, 5.0]]))
    assert advantages.tolist() == [[1 - 4, 2 - 3.5, 6 - 1.5], [0, 0, 0]]


def test_a_sample_without_reward_teaches_nothing() -> None:
    advantages = leave_one_out(torch.tensor([[1.0, NAN, 3.0], [7.0, NAN, NAN], [NAN, NAN, NAN]]))
    assert advantages.tolist() == [[-2, 0, 2], [0, 0, 0], [0, 0, 0]]


def test_a_single_sample_has_nothing_to_be_compared_with() -> None:
    assert leave_one_out(torch.tensor([[3.0], [4.0]])).tolist() == [[0], [0]]


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
