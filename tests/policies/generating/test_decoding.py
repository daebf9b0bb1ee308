"""Draws follow the shaped distribution, and say how likely they were."""

import pytest
import torch

from policies.generating.decoding import Shape, draw


def test_draws_follow_the_distribution_and_say_how_likely_they_were() -> None:
    torch.manual_seed(0)
    logits = torch.tensor([1.0, 0.0, -torch.inf, 2.0]).expand(4000, 4)
    chosen, log_probs, entropy = draw(logits, torch.rand(4000, dtype=torch.float64))
    expected = logits[0].softmax(-1)
    shares = torch.bincount(chosen, minlength=4) / 4000
    torch.testing.assert_close(shares, expected, atol=0.03, rtol=0)
    assert shares[2] == 0
    torch.testing.assert_close(log_probs, expected.log()[chosen])
    assert entropy[0].item() == pytest.approx(float(torch.special.entr(expected).sum()))


def test_the_entropy_of_a_draw_is_exact_under_autocast() -> None:
    logits = torch.tensor([[21.0, 20.0, -torch.inf, 22.0]])
    with torch.autocast("cpu", dtype=torch.float16):
        _, _, entropy = draw(logits, torch.tensor([0.5], dtype=torch.float64))
    expected = torch.special.entr(logits.softmax(-1)).sum()
    assert entropy.item() == pytest.approx(float(expected), abs=1e-5)


def test_the_edges_of_a_draw() -> None:
    logits = torch.tensor([[-torch.inf, 0.0, 0.0, -torch.inf]] * 3)
    uniform = torch.tensor([0.0, 0.5, 1 - 1e-12], dtype=torch.float64)
    assert draw(logits, uniform)[0].tolist() == [1, 2, 2]


def test_the_shape_is_that_of_sampling() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    assert Shape(temperature=2.0)(logits).tolist() == [[1.0, 0.5, 0.0]]
    assert Shape(top_p=0.5)(logits).tolist() == [[2.0, -torch.inf, -torch.inf]]
