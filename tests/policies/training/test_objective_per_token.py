"""Numbers worked out by hand; masked places hold nonsense, which must not show."""

import math

import pytest
import torch

from policies.training import objective

NAN = math.nan
MASK = torch.tensor([[True, True, True], [True, False, False]])


def test_the_score_comes_with_the_last_token_and_the_penalty_with_each() -> None:
    penalty_BT = torch.tensor([[0.1, 0.2, -0.3], [0.5, NAN, NAN]])
    reward_BT = objective.token_rewards(torch.tensor([2.0, -1.0]), penalty_BT, MASK)
    expected = torch.tensor([[-0.1, -0.2, 2.3], [-1.5, 0.0, 0.0]])
    torch.testing.assert_close(reward_BT, expected)


def test_a_row_without_a_token_has_no_reward() -> None:
    mask = torch.tensor([[False, False], [True, True]])
    reward_BT = objective.token_rewards(torch.tensor([5.0, 1.0]), torch.zeros(2, 2), mask)
    assert reward_BT.tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_advantages_by_hand() -> None:
    """γ = 0.5, λ = 0.5. Row 0 from the end:

    δ₂ = 4 − 3 = 1               A₂ = 1
    δ₁ = 1 + 0.5·3 − 2 = 0.5     A₁ = 0.5 + 0.25·1 = 0.75
    δ₀ = 0 + 0.5·2 − 1 = 0       A₀ = 0.25·0.75 = 0.1875
    """
    reward_BT = torch.tensor([[0.0, 1.0, 4.0], [2.0, NAN, NAN]])
    value_BT = torch.tensor([[1.0, 2.0, 3.0], [0.5, NAN, 7.0]])
    advantage_BT, return_BT = objective.gae(reward_BT, value_BT, MASK, gamma=0.5, lam=0.5)
    assert advantage_BT.tolist() == [[0.1875, 0.75, 1.0], [1.5, 0.0, 0.0]]
    assert return_BT.tolist() == [[1.1875, 2.75, 4.0], [2.0, 0.0, 0.0]]


def test_with_lambda_1_an_advantage_is_all_that_came_less_the_value() -> None:
    reward_BT, value_BT = torch.randn(2, 3), torch.randn(2, 3)
    advantage_BT, return_BT = objective.gae(reward_BT, value_BT, MASK, gamma=1.0, lam=1.0)
    assert return_BT[0].tolist() == pytest.approx(
        [float(reward_BT[0, t:].sum()) for t in range(3)], abs=1e-6
    )
    torch.testing.assert_close(advantage_BT[0], return_BT[0] - value_BT[0])


@pytest.mark.parametrize("length", [1, 2, 3])
def test_every_token_of_a_row_counts_and_none_after_it(length: int) -> None:
    """A token that is changed changes the losses if it is in the row, and only then."""
    mask = torch.tensor([[t < length for t in range(3)]])
    for changed in range(3):
        new = torch.zeros(1, 3)
        new[0, changed] = 0.1
        inside = changed < length
        zero, one = torch.zeros(1, 3), torch.ones(1, 3)
        assert (objective.clipped(new, zero, one, mask, 0.2)[0] != -length) == inside
        assert (objective.clipped(new, zero, one, mask, 0.05)[1] == 1) == inside
        assert (objective.value_loss(new, zero, one, mask, None) != 0.5 * length) == inside


def test_whitening_by_hand() -> None:
    x_BT = torch.tensor([[1.0, 2.0, 3.0], [6.0, NAN, 100.0]])  # mean 3, variance (4+1+0+9)/4
    white = objective.whitened(x_BT, MASK)
    deviation = 3.5**0.5
    expected = torch.tensor([[-2.0, -1.0, 0.0], [3.0, 0.0, 0.0]]) / deviation
    torch.testing.assert_close(white, expected)
    assert objective.whitened(torch.full((2, 3), 4.0), MASK).abs().max() == 0
    assert objective.whitened(x_BT, torch.zeros_like(MASK)).abs().max() == 0


def test_the_policy_loss_by_hand() -> None:
    """Clip 0.2. ρ 1.5, A 2: 1.2·2. ρ 0.5, A 1: 0.5. ρ 1.5, A −1: −1.5. ρ 0.5, A −1: −0.8."""
    mask = torch.tensor([[True, True, True], [True, False, False]])
    ratio = torch.tensor([[1.5, 0.5, 1.5], [0.5, NAN, 9.0]])
    advantage = torch.tensor([[2.0, 1.0, -1.0], [-1.0, NAN, 5.0]])
    log_prob = ratio.log().requires_grad_()
    loss, num_clipped = objective.clipped(log_prob, torch.zeros(2, 3), advantage, mask, 0.2)
    assert loss.item() == pytest.approx(-(2.4 + 0.5 - 1.5 - 0.8))
    loss.backward()
    # −ρ·A where it is not clipped; nothing where it is, or where there is no token.
    torch.testing.assert_close(log_prob.grad, torch.tensor([[0.0, -0.5, 1.5], [0.0, 0.0, 0.0]]))
    assert int(num_clipped) == 2


def test_the_value_loss_by_hand() -> None:
    """Clip 0.2, old value 0. V 1, R 2: max(1, 1.8²). V 1, R 0: max(1, 0.2²). V 0.1, R 1: 0.9²."""
    value = torch.tensor([[1.0, 1.0, 0.1], [3.0, NAN, NAN]], requires_grad=True)
    returns = torch.tensor([[2.0, 0.0, 1.0], [3.0, NAN, 1.0]])
    old = torch.tensor([[0.0, 0.0, 0.0], [3.0, 1.0, NAN]])
    loss = objective.value_loss(value, old, returns, MASK, 0.2)
    assert loss.item() == pytest.approx(0.5 * (3.24 + 1 + 0.81 + 0))
    loss.backward()
    # The clipped one is flat; the others pull by V − R.
    torch.testing.assert_close(value.grad, torch.tensor([[0.0, 1.0, -0.9], [0.0, 0.0, 0.0]]))
    plain = objective.value_loss(value, old, returns, MASK, None)
    assert plain.item() == pytest.approx(0.5 * (1 + 1 + 0.81))


def test_a_missing_end_costs() -> None:
    score_B = objective.with_end_penalty(
        torch.tensor([1.0, 1.0]), torch.tensor([True, False]), penalty=0.4
    )
    assert score_B.tolist() == pytest.approx([1.0, 0.6])


def test_what_the_value_head_foresaw() -> None:
    returns = torch.tensor([[1.0, 2.0, 3.0], [4.0, NAN, NAN]])
    assert objective.explained_variance(returns, returns, MASK) == 1
    assert objective.explained_variance(torch.zeros(2, 3), returns, MASK) == pytest.approx(0)
    half = returns / 2  # the rest has a quarter of the variance
    assert objective.explained_variance(half, returns, MASK) == pytest.approx(0.75)
    assert objective.explained_variance(returns, torch.ones(2, 3), MASK) is None


def test_shapes_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(ValueError, match="shapes differ"):
        objective.gae(torch.zeros(2, 2), torch.zeros(2, 3), MASK)
    with pytest.raises(ValueError, match="shapes differ"):
        objective.clipped(torch.zeros(2, 3), torch.zeros(3), torch.zeros(2, 3), MASK, 0.2)
