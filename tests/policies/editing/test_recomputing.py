"""Gradient checkpointing keeps less and gives the same gradients."""

from typing import Any

import pytest
import torch
from torch import nn

from policies.editing.agent import EditAgent
from policies.editing.recomputing import layers_of
from rewriting.errors import UserError
from tests.policies.editing.tiny_agents import STATES, tiny_agent


def gradients(agent: EditAgent) -> tuple[float, dict[str, torch.Tensor], int]:
    """A loss on given actions, its gradients, and the bytes that were kept for them."""
    actions = [
        agent.action(0, "Oh dear."),
        agent.action(1, "No."),
        agent.action(1),
        agent.action(3, "I see."),
    ]
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    weights = {p.untyped_storage().data_ptr() for p in agent.module.parameters()}
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        found = agent.log_probs(STATES, actions)
        loss = found.position_B.sum() + sum(tokens.sum() for tokens in found.tokens)
    loss.backward()
    named = {n: p for n, p in agent.module.named_parameters() if p.requires_grad}
    size = sum(size for pointer, size in kept.items() if pointer not in weights)
    return loss.item(), {n: p.grad for n, p in named.items() if p.grad is not None}, size


@pytest.mark.parametrize(("kind", "rank"), [("llama", 2), ("llama", 0), ("gpt2", 2)])
def test_the_same_gradients_from_less_memory(kind: str, rank: int) -> None:
    found: list[Any] = []
    for on in (False, True):
        agent = tiny_agent(kind, rank=rank)
        agent.gradient_checkpointing = on
        found.append(gradients(agent))
    (loss, plain, size), (again, recomputed, less) = found
    assert again == pytest.approx(loss, rel=1e-5)
    assert plain.keys() == recomputed.keys()
    for name, gradient in plain.items():
        torch.testing.assert_close(recomputed[name], gradient, atol=1e-4, rtol=1e-3)
    assert any(gradient.abs().max() > 0.01 for gradient in plain.values())
    assert less < 0.6 * size, (less, size)


def test_a_model_without_such_layers_is_refused() -> None:
    with pytest.raises(UserError, match="a Linear has no gradient checkpointing"):
        layers_of(nn.Linear(2, 2))
