"""The arithmetic of contrast against numbers worked out by hand."""

import math

import pytest
import torch

from rewards.reading.critic import contrasts, info_nce


def test_info_nce_by_hand() -> None:
    """e^own of 6, 1 and 1 over means of (6 + 1 + 2) / 3, (1 + 1 + 1) / 3 and (1 + 4 + 4) / 3."""
    own_N = torch.tensor([6.0, 1.0, 1.0]).log()
    others_NK = torch.tensor([[1.0, 2.0], [1.0, 1.0], [4.0, 4.0]]).log()
    expected = torch.tensor([6 / 3, 1.0, 1 / 3]).log()
    assert torch.allclose(info_nce(own_N, others_NK), expected, atol=1e-6)


def test_info_nce_is_at_most_log_of_k_and_one() -> None:
    own_N = torch.tensor([1e4, 5.0, -1e4], dtype=torch.float64)
    found_N = info_nce(own_N, torch.zeros(3, 7, dtype=torch.float64))
    assert found_N[0].item() == pytest.approx(math.log(8))
    assert 0 < found_N[1].item() < math.log(8)
    assert found_N[2].item() == pytest.approx(-1e4 - math.log(7 / 8), rel=1e-9)
    assert info_nce(own_N, torch.zeros(3, 0)).tolist() == [0.0, 0.0, 0.0]


def test_contrasts_by_hand() -> None:
    """With a scale of log 4 the cosines 1, 0 and 0 are worth 4, 1 and 1."""
    texts_ND = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    sentences_ND = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    bank_KD = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    found_N = contrasts(texts_ND, sentences_ND, bank_KD, torch.tensor(math.log(4)))
    assert found_N.tolist() == pytest.approx([math.log(4 / 3), math.log(1 / 2)])
