"""The logits are shaped alike for sampling and for scoring."""

import torch

from policies.generating.decoding import SamplingDistribution


def test_the_shape_is_that_of_sampling() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    assert SamplingDistribution(temperature=2.0)(logits).tolist() == [[1.0, 0.5, 0.0]]
    assert SamplingDistribution(top_p=0.5)(logits).tolist() == [[2.0, -torch.inf, -torch.inf]]
