"""KL estimators and controllers against numbers worked out by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewards.terms.kl import (
    AdaptiveController,
    FixedController,
    KLPenalty,
    kl_penalty,
)
from rewriting.runtime.language_models.kl import ESTIMATORS, k1, k2, k3, per_token

LOG_PROB = torch.log(torch.tensor([0.5, 0.1]))
REFERENCE = torch.log(torch.tensor([0.25, 0.2]))


def test_by_hand() -> None:
    two = math.log(2)
    assert k1(LOG_PROB, REFERENCE).tolist() == pytest.approx([two, -two])
    assert k2(LOG_PROB, REFERENCE).tolist() == pytest.approx([two**2 / 2, two**2 / 2])
    # r = 1/2: 1/2 − 1 + log 2; r = 2: 2 − 1 − log 2
    assert k3(LOG_PROB, REFERENCE).tolist() == pytest.approx([two - 0.5, 1 - two])


@given(st.lists(st.floats(-20, 0), min_size=1), st.floats(-20, 0))
def test_k2_and_k3_are_never_negative(log_probs: list[float], reference: float) -> None:
    log_prob = torch.tensor(log_probs)
    ref_log_prob = torch.full_like(log_prob, reference)
    assert (k2(log_prob, ref_log_prob) >= 0).all()
    assert (k3(log_prob, ref_log_prob) >= 0).all()


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_the_mean_is_the_kl(estimator: str) -> None:
    policy = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
    reference = torch.tensor([0.1, 0.4, 0.3, 0.2], dtype=torch.float64)
    exact = sum(
        p * math.log(p / q) for p, q in zip(policy.tolist(), reference.tolist(), strict=True)
    )
    values = ESTIMATORS[estimator](policy.log(), reference.log())
    assert float((policy * values).sum()) == pytest.approx(exact)


def test_k2_has_the_gradient_of_k1_squared() -> None:
    log_prob = LOG_PROB.clone().requires_grad_()
    k2(log_prob, REFERENCE).sum().backward()
    assert torch.allclose(log_prob.grad, LOG_PROB - REFERENCE)


@pytest.mark.parametrize("estimator", list(ESTIMATORS))
def test_masked_places_reach_neither_value_nor_gradient(estimator: str) -> None:
    log_prob_BT = torch.tensor([[-1.0, -math.inf], [-2.0, -3.0]], requires_grad=True)
    ref_log_prob_BT = torch.tensor([[-1.5, math.nan], [-2.0, -1.0]])
    mask_BT = torch.tensor([[1, 0], [1, 1]])
    kl_BT = per_token(log_prob_BT, ref_log_prob_BT, mask_BT, estimator)
    assert kl_BT[0, 1] == 0
    kl_BT.sum().backward()
    assert log_prob_BT.grad is not None
    assert log_prob_BT.grad.isfinite().all()
    assert log_prob_BT.grad[0, 1] == 0
    assert kl_BT[0].sum().item() == pytest.approx(
        ESTIMATORS[estimator](torch.tensor(-1.0), torch.tensor(-1.5)).item()
    )


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"\(2,\), \(1,\)"):
        k1(LOG_PROB, REFERENCE[:1])


def test_the_adaptive_controller_by_hand() -> None:
    controller = AdaptiveController(0.2, target=6.0, horizon=1000)
    controller.update(kl=6.6, num_responses=100)  # error 0.1: 0.2 · (1 + 0.1 · 100 / 1000)
    assert controller.value == pytest.approx(0.202)
    controller.update(kl=600.0, num_responses=100)  # clipped to 0.2: times 1.02
    assert controller.value == pytest.approx(0.20604)
    controller.update(kl=-5.0, num_responses=500)  # clipped to −0.2: times 0.9
    assert controller.value == pytest.approx(0.185436)
    with pytest.raises(ValueError, match="positive"):
        AdaptiveController(target=0, horizon=1)


def test_a_step_changes_the_coefficient_by_a_fifth_at_the_most() -> None:
    controller = AdaptiveController(1.0, target=6.0, horizon=10)
    controller.update(kl=600.0, num_responses=1000)
    assert controller.value == pytest.approx(1.2)
    controller.update(kl=0.0, num_responses=1000)  # without the bound 1 − 0.2 · 100, below zero
    assert controller.value == pytest.approx(0.96)


def run_of(penalty: KLPenalty, steps: int, batch_size: int, kl: float) -> float:
    """The coefficient after a run whose KL stays where it is."""
    for _ in range(steps):
        penalty.update(kl, batch_size)
    return penalty.controller.value


def test_by_default_a_short_run_can_move_the_coefficient_as_far_as_a_long_one() -> None:
    for steps, batch_size in ((100, 16), (4000, 256)):
        penalty = kl_penalty(0.2, target=6.0, num_responses=steps * batch_size)
        assert penalty is not None
        # A tenth of the run: (1 + 0.2 · 35 / steps) ^ (steps / 10), about e^0.7 = 2.01.
        assert run_of(penalty, steps // 10, batch_size, kl=60.0) == pytest.approx(0.4, rel=0.05)
    fixed = kl_penalty(0.2, target=6.0, horizon=10_000, num_responses=1600)
    assert fixed is not None
    assert run_of(fixed, 100, 16, kl=60.0) == pytest.approx(0.2065, abs=1e-4)  # 3 % in all


def test_no_weight_no_penalty_and_no_target_no_steering() -> None:
    assert kl_penalty(0.0, target=6.0, num_responses=10) is None
    fixed = kl_penalty(0.2, num_responses=10)
    assert fixed is not None
    assert run_of(fixed, 5, 10, kl=60.0) == 0.2


def test_the_penalty_is_a_part_of_a_checkpoint() -> None:
    penalty = KLPenalty(AdaptiveController(0.5, target=1.0, horizon=10), estimator="k3")
    penalty.update(kl=2.0, num_responses=5)
    again = KLPenalty(AdaptiveController(0.5, target=1.0, horizon=10), estimator="k3")
    again.load_state_dict(penalty.state_dict())
    rows = (LOG_PROB[None], REFERENCE[None], torch.ones(1, 2))
    assert torch.equal(again(*rows), penalty(*rows))
    assert torch.allclose(penalty(*rows), 0.55 * k3(LOG_PROB, REFERENCE)[None])
    with pytest.raises(ValueError, match="no estimator"):
        KLPenalty(FixedController(), "k4")


def test_a_fixed_coefficient_stays() -> None:
    controller = FixedController(0.1)
    controller.update(kl=100.0, num_responses=100)
    assert controller.value == 0.1
    other = FixedController(0.7)
    other.load_state_dict(controller.state_dict())
    assert other.value == 0.1
