"""One update on a frozen rollout, against a plain implementation that shares no code with ours.

The plain one reads row by row through transformers' own forward, encoder and all, without padding,
cached cross-attention or selection; its advantages and losses are loops over numbers.
"""

import math
from typing import Any, ClassVar

import pytest
import torch
from accelerate import Accelerator
from transformers import DynamicCache, EncoderDecoderCache

from policies.generating.generator import Generator
from policies.training.ppo.loop import improve, losses_of
from policies.training.ppo.rollouts import (
    Rollout,
    Targets,
    outcomes_of,
    reference_log_probs,
    sample_responses,
    targets_of,
)
from policies.training.ppo.settings import Settings
from rewards.terms.kl import FixedController, KLPenalty
from rewriting.errors import UserError
from rewriting.runtime.training.engine import Engine
from tests.policies.generating.tiny_generators import EXCHANGES, ending_early, tiny_generator

GAMMA, LAM, BETA, CLIP, VALUE_CLIP, VALUE_WEIGHT = 0.9, 0.8, 0.3, 0.02, 0.05, 0.4
SETTINGS = Settings(
    inner_epochs=1,
    batch_size=4,
    minibatch_size=4,
    micro_batch_size=3,
    clip=CLIP,
    value_clip=VALUE_CLIP,
    value_weight=VALUE_WEIGHT,
)
SCORES = [1.0, -0.5, 2.0, 0.3]


class Scores:
    totals = SCORES
    terms: ClassVar[dict[str, list[float]]] = {}
    parts: ClassVar[dict[str, list[float]]] = {}


def frozen_rollout(kind: str) -> tuple[Generator, Rollout, Targets]:
    """Sampled by one policy, with another as reference; then the policy moves away from both."""
    generator = ending_early(tiny_generator(kind))
    generator.freeze_reference()
    shake(generator, 0.2)
    rollout = sample_responses(generator, EXCHANGES, seed=3)
    lengths = {len(tokens) for tokens in rollout.sampled.tokens}
    assert len(lengths) > 1, "choose a seed with responses of different lengths"
    assert any(rollout.sampled.finished)
    references = reference_log_probs(generator, rollout, 3)
    outcomes = outcomes_of(rollout, Scores, references)
    kl = KLPenalty(FixedController(BETA))
    targets, _ = targets_of(outcomes, kl, gamma=GAMMA, lam=LAM, whiten=True)
    shake(generator, 0.3)
    return generator, rollout, targets


@torch.no_grad()
def shake(generator: Generator, size: float) -> None:
    torch.manual_seed(2)
    for parameter in generator.module.parameters():
        if parameter.requires_grad:
            parameter += size * torch.randn_like(parameter)


def plain_row(
    generator: Generator, role: str, context: list[int], response: list[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and values of one response by the model's own forward."""
    weight = generator.adapters.parameters(role)[0]
    before = DynamicCache([(pair[0][None], pair[1][None]) for pair in weight])
    common: dict[str, Any] = {"output_hidden_states": True, "use_cache": True}
    model = generator.model.model
    if generator.model.is_seq2seq:
        output = model(
            input_ids=torch.tensor([context]),
            decoder_input_ids=torch.tensor([[0, *response[:-1]]]),
            past_key_values=EncoderDecoderCache(before, DynamicCache()),
            **common,
        )
        logits, hidden = output.logits[0], output.decoder_hidden_states[-1][0]
    else:
        ids = torch.tensor([[*context, *response[:-1]]])
        output = model(input_ids=ids, past_key_values=before, **common)
        logits = output.logits[0, len(context) - 1 :]
        hidden = output.hidden_states[-1][0, len(context) - 1 :]
    log_probs = torch.log_softmax(logits, dim=-1)
    chosen = torch.stack([log_probs[t, token] for t, token in enumerate(response)])
    head = generator.value_head
    normal = torch.nn.functional.layer_norm(
        hidden, hidden.shape[-1:], head.norm.weight, head.norm.bias
    )
    inner = torch.tanh(normal @ head.hidden.weight.T + head.hidden.bias)
    return chosen, (inner @ head.value.weight.T + head.value.bias)[:, 0]


def plain_advantages(
    log_probs: list[list[float]], references: list[list[float]], values: list[list[float]]
) -> tuple[list[list[float]], list[list[float]]]:
    advantages, returns = [], []
    for row, score in enumerate(SCORES):
        rewards = [-BETA * (a - b) for a, b in zip(log_probs[row], references[row], strict=True)]
        rewards[-1] += score
        found, later = [], 0.0
        for t in reversed(range(len(rewards))):
            following = values[row][t + 1] if t + 1 < len(rewards) else 0.0
            later = rewards[t] + GAMMA * following - values[row][t] + GAMMA * LAM * later
            found.insert(0, later)
        advantages.append(found)
        returns.append([a + v for a, v in zip(found, values[row], strict=True)])
    flat = [value for row_values in advantages for value in row_values]
    mean = sum(flat) / len(flat)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in flat) / len(flat))
    return [[(value - mean) / deviation for value in row] for row in advantages], returns


def plain_losses(
    new: list[torch.Tensor],
    new_values: list[torch.Tensor],
    old: list[list[float]],
    old_values: list[list[float]],
    advantages: list[list[float]],
    returns: list[list[float]],
) -> tuple[torch.Tensor, torch.Tensor]:
    policy, value = torch.tensor(0.0), torch.tensor(0.0)
    for row in range(len(old)):
        for t, advantage in enumerate(advantages[row]):
            ratio = torch.exp(new[row][t] - old[row][t])
            bounded = torch.clamp(ratio, 1 - CLIP, 1 + CLIP)
            policy = policy - torch.min(ratio * advantage, bounded * advantage)
            v, before, target = new_values[row][t], old_values[row][t], returns[row][t]
            near = torch.clamp(v, before - VALUE_CLIP, before + VALUE_CLIP)
            value = value + 0.5 * torch.max((v - target) ** 2, (near - target) ** 2)
    return policy, value


@pytest.mark.parametrize("kind", ["t5", "llama"])
def test_advantages_losses_and_gradients_are_those_of_a_plain_implementation(kind: str) -> None:
    generator, rollout, targets = frozen_rollout(kind)
    tokens, contexts = rollout.sampled.tokens, rollout.encoded.contexts
    old = [row.tolist() for row in rollout.sampled.log_probs]
    old_values = [row.tolist() for row in rollout.sampled.values]
    with torch.no_grad():
        references = [
            plain_row(generator, "reference", c, t)[0].tolist()
            for c, t in zip(contexts, tokens, strict=True)
        ]
    advantages, returns = plain_advantages(old, references, old_values)
    for row, response in enumerate(tokens):
        size = len(response)
        found = targets.advantage_BT[row, :size].tolist()
        assert found == pytest.approx(advantages[row], abs=1e-5)
        assert targets.return_BT[row, :size].tolist() == pytest.approx(returns[row], abs=1e-5)

    trained = [p for p in generator.module.parameters() if p.requires_grad]
    loss, policy, value, _, num_clipped = losses_of(
        generator, rollout, targets, [2, 0, 3, 1], 0, SETTINGS
    )
    ours = torch.autograd.grad(loss, trained)
    plain = [plain_row(generator, "policy", c, t) for c, t in zip(contexts, tokens, strict=True)]
    expected_policy, expected_value = plain_losses(
        [row[0] for row in plain],
        [row[1] for row in plain],
        old,
        old_values,
        advantages,
        returns,
    )
    assert num_clipped > 0, "choose a move that clips some tokens"
    assert policy.item() == pytest.approx(expected_policy.item(), abs=1e-5, rel=1e-5)
    assert value.item() == pytest.approx(expected_value.item(), abs=1e-5, rel=1e-5)
    theirs = torch.autograd.grad(expected_policy + VALUE_WEIGHT * expected_value, trained)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def updated(generator: Generator, rollout: Rollout, targets: Targets) -> dict[str, float]:
    """One optimizer step on all rows: minus the gradient."""

    class Descent(torch.optim.SGD):
        def __init__(self, groups: Any, lr: float, weight_decay: float) -> None:
            super().__init__(groups, lr=lr)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch.optim, "AdamW", Descent)
        accelerator = Accelerator(cpu=True)
        engine = Engine(generator.module, accelerator, learning_rate=1.0, max_grad_norm=1e9)
    return improve(engine, generator, rollout, targets, 0, SETTINGS, 6)


def test_an_update_is_a_step_along_that_gradient() -> None:
    generator, rollout, targets = frozen_rollout("t5")
    trained = [p for p in generator.module.parameters() if p.requires_grad]
    loss, policy, *_ = losses_of(generator, rollout, targets, range(4), 0, SETTINGS)
    tokens = int(targets.mask_BT.sum())
    gradient = torch.autograd.grad(loss / tokens, trained)
    norm = math.sqrt(sum(float(part.square().sum()) for part in gradient))
    before = [p.detach().clone() for p in trained]
    figures = updated(generator, rollout, targets)
    assert figures["grad_norm"] == pytest.approx(norm, rel=1e-4)
    assert figures["policy_loss"] == pytest.approx(policy.item() / tokens, rel=1e-4)
    for old, new, part in zip(before, trained, gradient, strict=True):
        torch.testing.assert_close(new.detach(), old - part, atol=1e-5, rtol=1e-4)


def test_a_policy_that_has_diverged_is_said_and_not_trained_on() -> None:
    generator, rollout, targets = frozen_rollout("t5")
    with torch.no_grad():
        generator.value_head.norm.bias.fill_(math.nan)
    before = [p.detach().clone() for p in generator.adapters.parameters("policy")]
    with pytest.raises(UserError, match="step 7: the gradient is nan, so the training"):
        updated(generator, rollout, targets)
    assert all(map(torch.equal, before, generator.adapters.parameters("policy")))
