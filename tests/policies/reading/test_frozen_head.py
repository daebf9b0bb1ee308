"""The shortcut through a frozen output layer gives the numbers and gradients of autograd."""

import pytest
import torch
from torch import nn

from policies.generating.decoding import SamplingDistribution
from policies.reading import frozen_head
from policies.reading.frozen_head import ScaledHead, frozen_head_log_probs, frozen_layer


@pytest.mark.parametrize(
    "shape",
    [
        SamplingDistribution(),
        SamplingDistribution(temperature=0.7),
        SamplingDistribution(temperature=1.5, top_p=0.9),
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_the_same_as_autograd(
    shape: SamplingDistribution, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frozen_head, "CHUNK", 3)  # so that there are several, the last one short
    torch.manual_seed(0)
    weight, hidden = torch.randn(11, 4), torch.randn(7, 4, requires_grad=True)
    target = (hidden @ weight.T).argmax(dim=-1).detach()  # within every nucleus
    upstream = torch.randn(7)
    found = frozen_head_log_probs(hidden, target, weight, scale, shape)
    (gradient,) = torch.autograd.grad((found * upstream).sum(), hidden)
    logits = shape(hidden * scale @ weight.T)
    expected = logits.log_softmax(-1)[torch.arange(7), target]
    (expected_gradient,) = torch.autograd.grad((expected * upstream).sum(), hidden)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradient, expected_gradient)
    with torch.no_grad():
        again = frozen_head_log_probs(hidden, target, weight, scale, shape)
    assert torch.equal(again, found)


def test_the_layers_it_is_for() -> None:
    frozen = nn.Linear(4, 11, bias=False).requires_grad_(False)
    assert frozen_layer(frozen) == (frozen.weight, 1.0)
    assert frozen_layer(ScaledHead(frozen, 0.5)) == (frozen.weight, 0.5)
    assert frozen_layer(nn.Linear(4, 11, bias=False)) is None
    assert frozen_layer(nn.Linear(4, 11).requires_grad_(False)) is None
    assert frozen_layer(None) is None
